"""IKE: demonstrations found by an encoder and put before the prompt; weights stay."""
