"""One folder per `evaluate` module: script, card, requirements, demo. See `seesaw_cf.metrics.register`."""
