"""One fit on one split, and experiments of several; their cost, and settings chosen by them."""
