"""The paper's claims, each measured on the data at hand and judged by a rule.

``verdict``    the rules: a margin of .005 NMAE and a 95 % interval decide
``subject``    the data, and the experiments that the claims share
``results``    what those experiments have found
``accuracy``   verdicts from held-out errors
``algorithm``  verdicts from the course of the algorithm and what it costs
``tables``     verdicts that need the paper's tables, or other methods
``catalogue``  all claims in the paper's words, with how each is measured
``check``      submits what is missing to the run store, and looks at what is there
``report``     the same as HTML, Markdown and JSON
"""

from gmc_core.paper.claims.catalogue import CLAIMS, Claim, judge
from gmc_core.paper.claims.results import Measured, Results
from gmc_core.paper.claims.subject import Subject
from gmc_core.paper.claims.verdict import MARGIN, Verdict

__all__ = ["CLAIMS", "MARGIN", "Claim", "Measured", "Results", "Subject", "Verdict", "judge"]
