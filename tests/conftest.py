"""
What all tests share: the command line as a function, and no deadline.

The first example of a compiled function pays for its compilation.
"""

import pytest
from hypothesis import settings

from elsewhere.cli import app

settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture
def run(capsys):
    """A command -> its exit status, what it printed, and what it said on standard error."""

    def command(*words):
        with pytest.raises(SystemExit) as stopped:
            app([str(w) for w in words], prog_name="elsewhere")
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return command
