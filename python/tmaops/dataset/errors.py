"""The one error of this package."""


class Refused(ValueError):
    """A data set, an episode or an option that cannot be resampled as asked. Says where, what was found, what is needed.

    Attributes: where, got, needed: the parts of the message, as text.
    """

    def __init__(self, where: str, got: str, needed: str):
        self.where, self.got, self.needed = where, got, needed
        super().__init__(f"{where}: got {got}; needed {needed}")

    def __reduce__(self):  # so that worker processes can hand it on
        return (Refused, (self.where, self.got, self.needed))
