"""The one error of this package."""

from tmaops._errors import InvalidValue


class Refused(InvalidValue):
    """A data set, an episode or an option that cannot be resampled as asked. Says where, what was found, what is needed.

    Attributes: where, got, needed: the parts of the message, as text.
    """

    reason = ""  # the name of the library's error behind it

    def __init__(self, where: str, got: str, needed: str):
        message = f"{where}: got {got}; needed {needed}"
        super().__init__(message, code=18, number="E018", name="bad_parameter", where=where, got=got, needed=needed)

    def __reduce__(self):  # so that worker processes can hand it on
        return (type(self), (self.where, self.got, self.needed))


class Lost(Refused):
    """A run that ended before its work did, through no fault of the data; --resume goes on with it."""
