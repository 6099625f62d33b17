"""What the unit tests share."""

from hypothesis import settings

# The same examples in every run: a red build says something about the change, not about luck.
settings.register_profile("unit", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("unit")
