"""The dashboard's entrance: the list of pages and nothing else.

It imports only Streamlit and calls ``st.navigation`` at once. A process whose first
visitor opens a page by its URL runs that page alone, without this script; the page's
header notices and starts again through here (``gmc_dashboard.shared.components.page_header``).
"""

import streamlit as st

st.set_page_config(page_title="Gaussian Matrix Completion", page_icon="🟦", layout="wide")

page = st.navigation(
    [
        st.Page("pages/home.py", title="Start", icon=":material/home:", default=True),
        st.Page("pages/learn.py", title="Learn", icon=":material/school:", url_path="learn"),
        st.Page("pages/data.py", title="Data", icon=":material/table_chart:", url_path="data"),
        st.Page("pages/fit.py", title="Fit", icon=":material/play_circle:", url_path="fit"),
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
        st.Page(
            "pages/sensitivity.py",
            title="Sensitivity",
            icon=":material/tune:",
            url_path="sensitivity",
        ),
        st.Page("pages/compare.py", title="Compare", icon=":material/balance:", url_path="compare"),
        st.Page("pages/claims.py", title="Claims", icon=":material/gavel:", url_path="claims"),
        st.Page("pages/runs.py", title="Runs", icon=":material/list_alt:", url_path="runs"),
        st.Page(
            "pages/results.py", title="Results", icon=":material/fact_check:", url_path="results"
        ),
    ],
    position="top",
)
st.session_state["gmc_dashboard.entered"] = True
page.run()
