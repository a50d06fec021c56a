"""Personal data: finding, exporting, erasing, and deleting it after its age limit."""
