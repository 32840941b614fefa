"""A run for a paper: figures, tables and how to repeat it, in one zip.

contents_of(store, run)             what there is to show of a run, as plain values
figures, tables                     draw and write it
export_bundle(store, id, path)      the zip
"""
