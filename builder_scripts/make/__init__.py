"""From people and facts to cases: edit requests, cross-subject and cross-property clozes, coupled entities."""
