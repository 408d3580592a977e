"""The package's version, which is that of the library (CMakeLists.txt)."""

__version__ = "0.2.0"
