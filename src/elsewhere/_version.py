"""The version, read by the build and stamped into every artefact."""

__version__ = "0.1.0"
