"""Settings for all tests."""

from hypothesis import settings

# No deadline: other work on the machine must not decide whether a property holds.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
