"""What every room uses: errors that name their remedy, files written whole, the version."""
