"""The Runs page; to be written."""

import streamlit as st

st.title("Runs", anchor=False)
st.page_link("pages/data.py", label="Choose data", icon=":material/arrow_forward:")
