"""What ROME, MEMIT, EMMET and AlphaEdit share: positions, target values z, second moments, least squares."""
