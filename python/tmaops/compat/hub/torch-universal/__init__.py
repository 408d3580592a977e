from tmaops.compat.hub import layers

__all__ = ["layers"]
