"""The documentation. This file makes the folder a package, so that a release contains the guides that it serves."""
