"""Other methods and other packages on the same splits, with paired differences."""
