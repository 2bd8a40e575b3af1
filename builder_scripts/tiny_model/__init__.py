"""The embedded model `seesaw-tiny`: its corpus, its training, its evaluation, its card."""
