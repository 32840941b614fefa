"""The dashboard's entrance: the list of pages and nothing else.

It imports only Streamlit and calls ``st.navigation`` at once, so that a page opened
directly by its URL never sees the automatic menu of the ``pages`` folder.
"""

import streamlit as st

st.set_page_config(
    page_title="Gaussian Matrix Completion",
    page_icon="🟦",
    layout="wide",
)

page = st.navigation(
    {
        "": [
            st.Page("pages/home.py", title="Start", icon=":material/home:", default=True),
        ],
        "Build a model": [
            st.Page("pages/data.py", title="Data", icon=":material/table_chart:", url_path="data"),
            st.Page("pages/fit.py", title="Fit", icon=":material/play_circle:", url_path="fit"),
            st.Page(
                "pages/sensitivity.py",
                title="Sensitivity",
                icon=":material/tune:",
                url_path="sensitivity",
            ),
        ],
        "Look inside": [
            st.Page(
                "pages/covariance.py",
                title="Covariance",
                icon=":material/grid_on:",
                url_path="covariance",
            ),
            st.Page(
                "pages/recommend.py",
                title="Recommend",
                icon=":material/thumb_up:",
                url_path="recommend",
            ),
        ],
        "Keep and compare": [
            st.Page("pages/runs.py", title="Runs", icon=":material/list_alt:", url_path="runs"),
            st.Page(
                "pages/results.py",
                title="Results",
                icon=":material/fact_check:",
                url_path="results",
            ),
        ],
    }
)
page.run()
