"""What all tests share: no deadline, because the first example of a compiled function pays for its compilation."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
