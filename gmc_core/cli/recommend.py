"""``gmc recommend``: the best unseen items for a user, known or new."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.signs import signed
from gmc_core.cli.activity import doing
from gmc_core.cli.list_file import add_file_arguments, matched_file
from gmc_core.cli.output import check_output, note, table, write_json
from gmc_core.cli.parser import add_command
from gmc_core.cli.values import whole

if TYPE_CHECKING:
    from gmc_core.model.gaussian_model import GaussianModel, Posterior, Recommendation
    from gmc_core.model.person_ratings import Matched

EXAMPLES = """\
  gmc recommend --model ml-1m.npz --user 42 --top 5
  gmc recommend --model ml-1m.npz --rate "title:Toy Story=5" --rate "id:6=2" --explain
  gmc recommend --model ml-1m.npz --rate "title:Heat (1995)=4" --min-ratings 50
  gmc recommend --model ml-1m.npz --rate "title:Heat (1995)=4" --group "gender F"
  gmc recommend --model ml-1m.npz --ratings-file my-letterboxd-ratings.csv
"""
SHARES = 3


def add_parser(commands: Any) -> None:
    """Add the command ``recommend``."""
    parser = add_command(
        commands,
        "recommend",
        help="recommend items to a user of the model, or to a new one",
        description="Recommend the unseen items with the highest predictions: to a user of the\n"
        "training data, or to a new user from a few ratings.",
        examples=EXAMPLES,
    )
    parser.add_argument("--model", metavar="FILE", required=True, help="saved by gmc fit")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--user", metavar="ID", help="a user of the training data")
    who.add_argument(
        "--rate",
        action="append",
        metavar="WHAT=RATING",
        help="a rating of a new user; WHAT is title:NAME (case, accents and the article's place "
        "do not matter, a part suffices) or id:ID. Repeat for more ratings",
    )
    add_file_arguments(parser)
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME",
        help="a group that the new user belongs to, such as 'gender F', where the model knows "
        "groups of users; repeat for more",
    )
    parser.add_argument("--top", type=whole, default=10, metavar="N", help="how many (default: 10)")
    parser.add_argument(
        "--min-ratings",
        type=whole,
        default=0,
        metavar="N",
        help="only items with N training ratings or more (default: 0)",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show which ratings raise or lower each prediction, and by how much",
    )
    parser.add_argument("--json", metavar="FILE", help="write the list as JSON ('-' for stdout)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Recommend."""
    if args.top < 1:
        raise ConfigError(f"--top is the length of the list, 1 or more, not {args.top}.")
    check_output(args.json, "--json")
    from gmc_core.cli.calibrate import remedy
    from gmc_core.model.calibration import note_of
    from gmc_core.model.model_file import load_model

    doing("reading the model")
    model = load_model(args.model)
    doing("predicting")
    of_file = matched_file(model, args)
    if args.min_ratings > 0 and model.ratings is None:
        raise ConfigError(
            "This model was saved without its ratings, so it does not know how often an item was "
            "rated; leave out --min-ratings."
        )
    posterior = _posterior(model, args, of_file)
    found = model.recommend(posterior, args.top, min_ratings=args.min_ratings)
    if not found:
        note("no item is left to recommend; lower --min-ratings")
    if args.json is not None:
        plain = _plain(model, posterior, found)
        if of_file is not None:
            plain["ratings_file"] = of_file.as_dict()
        write_json(args.json, plain)
    if args.json != "-":
        print(_table(model, found))
        note(note_of(model.calibration) + remedy(model, args.model))
        if args.explain:
            for item in found:
                print(_explanation(model, posterior, item))
    return 0


def _posterior(
    model: GaussianModel, args: argparse.Namespace, of_file: Matched | None
) -> Posterior:
    if args.user is not None:
        if args.group:
            raise ConfigError(
                "--group describes a new user; for --user the model already knows the groups."
            )
        posterior = model.posterior_of(args.user)
        note(f"user {args.user} has {len(posterior.observed):,} training ratings")
        return posterior
    if not args.rate and not args.group and of_file is None:
        raise ConfigError(
            "Give --user, or what is known of a new user: --rate, --ratings-file, --group or more "
            "of them."
        )
    items, values = [], []
    for text in args.rate or ():
        item, value = _rating(model, text)
        if item in items:
            raise ConfigError(f"{model.title(item)} is rated twice; keep one of the ratings.")
        note(f"{model.title(item)}: {value:g}")
        items.append(item)
        values.append(value)
    for item, value in of_file.ratings.items() if of_file is not None else ():
        if item not in items:  # what --rate says counts
            items.append(item)
            values.append(value)
    if not args.group:
        return model.posterior(items, values)
    if model.groups is None:
        raise ConfigError("This model knows of no groups of users; leave out --group.")
    return model.posterior(items, values, model.groups.covariates_of(args.group))


def _rating(model: GaussianModel, text: str) -> tuple[int, float]:
    """Item position and rating of one ``--rate``."""
    what, equals, value = text.rpartition("=")
    kind, colon, name = what.partition(":")
    try:
        rating = float(value)
    except ValueError:
        rating = float("nan")
    if not equals or not colon or kind not in ("title", "id") or rating != rating:
        raise ConfigError(
            f"--rate {text!r}: write title:NAME=RATING or id:ID=RATING, such as "
            '"title:Toy Story=5".'
        )
    if kind == "id":
        return model.items.index(name.strip()), rating
    from gmc_core.model.lookup import find_title

    return find_title(name, model.item_info.titles, model.items.ids.tolist()), rating


def _table(model: GaussianModel, found: list[Recommendation]) -> str:
    from gmc_core.model.calibration import level_of

    counts = model.ratings is not None
    spread = "± sd" if model.ordinal is None else "± sd of latent response"
    interval = f"{100 * level_of(model.calibration):.4g} % interval"
    header = ["", "predicted", spread, interval, *(["ratings"] if counts else []), "  item"]
    rows = []
    for rank, item in enumerate(found, start=1):
        raters = [f"{item.n_ratings:,}"] if counts else []
        is_id = item.title == str(item.item_id)
        name = item.title if is_id else f"{item.title}  (id:{item.item_id})"
        ends = f"{item.low:.3g} – {item.high:.3g}"
        rows.append([str(rank), f"{item.predicted:.2f}", f"{item.sd:.2f}", ends, *raters, name])
    width = max((len(row[-1]) for row in rows), default=0)
    return table(
        header[:-1] + [header[-1].ljust(width)], [r[:-1] + [r[-1].ljust(width)] for r in rows]
    )


def _explanation(model: GaussianModel, posterior: Posterior, item: Recommendation) -> str:
    """The mean, what else is known, the largest shares, the others' sum: the prediction, or
    for ordered ratings the latent response that it follows from."""
    shares = model.explain(posterior, item.item)
    rest = sum(share.share for share in shares[SHARES:])
    lines = ["", f"{item.title}: {item.predicted:.2f}"]
    mean, before = model.gaussian.mean[item.item], posterior.prior_mean[item.item]
    lines.append(f"  {signed(mean, 2):>5}  mean of all users")
    if before != mean:
        lines.append(f"  {signed(before - mean, 2):>5}  what the user's groups like more or less")
    if shares.similar is not None:
        lines.append(f"  {signed(shares.similar, 2):>5}  what similar users like more or less")
    lines += [
        f"  {signed(share.share, 2):>5}  {share.title} rated {share.rating:g}"
        for share in shares[:SHARES]
    ]
    if len(shares) > SHARES:
        lines.append(f"  {signed(rest, 2):>5}  {len(shares) - SHARES:,} other ratings")
    if model.ordinal is not None:
        lines.append(
            f"  {item.latent:5.2f}  is the latent response; as a rating {item.predicted:.2f}"
        )
    return "\n".join(lines)


def _plain(
    model: GaussianModel, posterior: Posterior, found: list[Recommendation]
) -> dict[str, Any]:
    from gmc_core.model.answers import explained
    from gmc_core.model.calibration import described

    return {
        "model": {"data": model.data_name, "iteration": model.iteration},
        "explained": explained(model.ordinal),
        "interval": described(model.calibration),
        "ratings": [
            {"id": model.items.ids.tolist()[item], "title": model.title(int(item)), "rating": value}
            for item, value in zip(posterior.observed, posterior.values.tolist(), strict=True)
        ],
        "recommendations": [
            {
                "id": item.item_id,
                "title": item.title,
                "genres": list(item.genres),
                "predicted": item.predicted,
                "rating": item.rating,
                "latent": item.latent,
                "sd": item.sd,
                "interval": [item.low, item.high],
                "n_ratings": item.n_ratings,
                "mean_of_all_users": float(model.gaussian.mean[item.item]),
                "before_any_rating": float(posterior.prior_mean[item.item]),
                **_of_similar_users(posterior, item.item),
                "contributions": [
                    {"id": part.item_id, "title": part.title, "share": part.share}
                    for part in model.explain(posterior, item.item)
                ],
            }
            for item in found
        ],
    }


def _of_similar_users(posterior: Posterior, item: int) -> dict[str, float]:
    """One more part of the sum, where the model is two-sided."""
    found = posterior.of_similar_users(item)
    return {} if found is None else {"similar_users": found}
