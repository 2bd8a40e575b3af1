"""Names of the models that come with the package: folders below `seesaw_cf/models/`."""

EMBEDDED: tuple[str, ...] = ("seesaw-tiny",)
