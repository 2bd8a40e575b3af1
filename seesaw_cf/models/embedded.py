"""Names of the models that come with the package: folders below `seesaw_cf/models/`."""

__all__ = ["EMBEDDED"]

EMBEDDED: tuple[str, ...] = ("seesaw-tiny",)
