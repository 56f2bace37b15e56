"""The one kind of error that the commands report without a traceback."""


class UserError(Exception):
    """The message is for the user: what, where, the actual value and what is allowed."""


def require(condition, message):
    """Raises UserError(message) unless the condition holds."""
    if not condition:
        raise UserError(message)
