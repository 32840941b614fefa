"""Small texts as people have them, with what is right to find in each.

Each: name → (text, separator, whether cells are in quotation marks, header, decimal sign).
"""

from __future__ import annotations

R = "u1{0}a{0}3\nu1{0}b{0}5\nu2{0}a{0}1\nu2{0}c{0}4\nu3{0}b{0}2\n"
N = "1{0}7{0}3\n1{0}8{0}5\n2{0}7{0}1\n2{0}9{0}4\n"
HEAD = "user{0}item{0}rating\n"
STRAY = 'user\titem\trating\nu1\t"Rob\t4\nu1\tB\t5\nu2\tB\t2\nu3\t"Bob\t1\nu3\tC\t5\n'

HABITS: dict[str, tuple[str, str, bool, bool, str]] = {
    **{
        f"plain {sign!r} {'head' if head else 'bare'}": (
            (HEAD if head else "").format(sign) + R.format(sign),
            "whitespace" if sign == " " else sign,
            False,
            head,
            ".",
        )
        for sign in (",", ";", "\t", "|", "::", " ")
        for head in (True, False)
    },
    "numbers only": (N.format(","), ",", False, False, "."),
    "sep line": ("sep=;\n" + (HEAD + R).format(";"), ";", False, True, "."),
    "sep line in quotes": ('"sep=;"\n' + (HEAD + R).format(";"), ";", False, True, "."),
    "sep line, tab": ("sep=\t\n" + (HEAD + R).format("\t"), "\t", False, True, "."),
    "stray marks": (STRAY, "\t", False, True, "."),
    "inches": (
        'user,item,rating\nu1,12" pan,4\nu2,12" pan,3\nu2,9" pan,5\n', ",", False, True, ".",
    ),
    "one mark never closed": (
        'user;item;rating\n"u1";"a";4\n"u1";"b;3\n"u2";"a";5\n', ";", True, True, ".",
    ),
    "decimal comma": ("user;item;rating\nu1;a;3,5\nu1;b;4\nu2;a;1,5\n", ";", False, True, ","),
    "decimal comma, rare": (
        "user;item;rating\n" + "u1;a;3\n" * 30 + "u2;b;3,5\n", ";", False, True, ",",
    ),
    "quoted decimal comma": (
        'user,item,rating\n"u1","a","3,5"\n"u1","b","4,5"\n"u2","a","1,5"\n', ",", True, True, ",",
    ),
    "quoted separators": (
        'user,item,rating\nu1,"a, b",3\nu1,"c",4\nu2,"a, b",2\n', ",", True, True, ".",
    ),
    "lines in cells": (
        'user,item,rating\nu1,"a\nb",3\nu1,c,4\nu2,"a\nb",2\nu2,d,1\n', ",", True, True, ".",
    ),
    "thousands, comma": ('k;x;y\na;1,234.5;2\nb;2,100.5;3\nc;900.25;1\n', ";", False, True, "."),
    "thousands, point": ('k;x;y\na;1.234,5;2\nb;2.100,5;3\nc;900,25;1\n', ";", False, True, ","),
    "thousands, blank": ("k;x;y\na;1 234,5;2\nb;2 100,5;3\nc;900,25;1\n", ";", False, True, ","),
    "comments": ("# from a tool, 2020\n# a, b\n" + (HEAD + R).format(","), ",", False, True, "."),
    "comments, percent": ("% 5 ratings\n" + N.format(" "), "whitespace", False, False, "."),
    "comment is the header": (
        "# user item rating\n" + N.format(" "), "whitespace", False, True, ".",
    ),
    "comment below": (
        HEAD.format(",") + "u1,a,3\n# second, part\nu2,a,4\nu2,b,1\n", ",", False, True, ".",
    ),
    "hashes are ids": ("user,item,rating\n#a,x,3\n#b,x,4\n#a,y,1\n", ",", False, True, "."),
    "row names": ('"user","item","rating"\n"1","a","x",3\n"2","a","y",4\n', ",", True, True, "."),
    "row names, blanks": ('"user" "item" "rating"\n"1" 1 1 3\n"2" 1 2 4\n"3" 2 1 5\n',
                          "whitespace", True, True, "."),
    "unnamed index": (",user,item,rating\n0,a,x,3\n1,a,y,4\n2,b,x,1\n", ",", False, True, "."),
    "CR": ((HEAD + R).format(",").replace("\n", "\r"), ",", False, True, "."),
    "CRLF": ((HEAD + R).format(";").replace("\n", "\r\n"), ";", False, True, "."),
    "mixed ends": ("user,item,rating\r\nu1,a,3\nu1,b,4\ru2,a,5\r\n", ",", False, True, "."),
    "rows of separators": ((HEAD + R).format(";") + ";;\n;;\n", ";", False, True, "."),
    "columns of separators": (
        "user;item;rating;;\nu1;a;3;;\nu1;b;4;;\nu2;a;2;;\n", ";", False, True, ".",
    ),
    "trailing separator": ("user;item;rating\nu1;a;3;\nu1;b;4;\nu2;a;2;\n", ";", False, True, "."),
    "days first": ("user;item;rating;date\nu1;a;3;31.12.2019\nu1;b;4;01.01.2020\n",
                   ";", False, True, "."),
    "titles with commas": (
        "user;item;rating;title\nu1;a;3;One, two\nu1;b;4;Three, four\nu2;a;1;One, two\n",
        ";", False, True, ".",
    ),
    "blanks around": ("user, item, rating\nu1, a, 3\nu1, b, 4\nu2, a, 1\n", ",", False, True, "."),
    "spaces in columns": ("user item rating\n u1   a  3\n u22  b  4\n u3   a  1\n",
                          "whitespace", False, True, "."),
    "table of text names": ("k;x;y\na;1,5;2,5\nb;;4\nc;2;\n", ";", False, True, ","),
}  # fmt: skip
