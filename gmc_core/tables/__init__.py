"""Tables of any quantities: reading them, filling them, the scikit-learn imputer."""
