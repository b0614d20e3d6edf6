"""ROOM 7: judging fakes, ours or any other tool's."""
