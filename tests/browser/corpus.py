"""Forty strings that would do something on a page that treats text as anything but text.

Each sets `window.ran`, opens a dialog, loads something, moves the page or posts a form, if it is
ever read as HTML, as an attribute, as a link, as a script, as a template or as an htmx instruction.
All are shorter than 128 characters and hold no control character, so that every field takes them.
"""

from __future__ import annotations

from typing import Final

CORPUS: Final = (
    # Elements that run
    "<script>window.ran=1</script>",
    "<ScRiPt >alert(2)</sCrIpT >",
    "<img src=x onerror=window.ran=3>",
    "<svg/onload=alert(4)>",
    "<svg><script>window.ran=5</script></svg>",
    "<body onload=alert(6)>",
    "<iframe srcdoc='<script>parent.ran=7</script>'></iframe>",
    "<object data=javascript:alert(8)></object>",
    "<embed src=javascript:alert(9)>",
    "<video><source onerror=window.ran=10></video>",
    "<details open ontoggle=window.ran=11>",
    "<input autofocus onfocus=window.ran=12>",
    "<select autofocus onfocus=window.ran=13><option>x</select>",
    "<math><mtext><img src onerror=window.ran=14></mtext></math>",
    "<dialog open><form method=dialog><button autofocus onfocus=window.ran=15>",
    # Out of the place where it stands
    '" autofocus onfocus=window.ran=16 x="',
    "' onmouseover='window.ran=17' x='",
    '"><script>window.ran=18</script>',
    "'><img src=x onerror='window.ran=19'>",
    "</textarea><script>window.ran=20</script>",
    "</title><script>window.ran=21</script>",
    "</template><img src=x onerror=window.ran=22>",
    "--><script>window.ran=23</script><!--",
    "]]><script>window.ran=24</script>",
    "</td></tr></table><script>window.ran=25</script>",
    '<noscript><p title="</noscript><img src=x onerror=window.ran=26>">',
    # Links, and what moves or posts the page
    "javascript:window.ran=27",
    "data:text/html,<script>window.ran=28</script>",
    '<a href="javascript:window.ran=29" autofocus>here</a>',
    "<meta http-equiv=refresh content='0;url=/sign-in?ran=30'>",
    "<base href=https://elsewhere.example/>",
    "<form action=/sign-out method=post><button>31</button></form>",
    "<style>@import url(https://elsewhere.example/ran.css);*{display:none}</style>",
    # Other languages of a page
    "<div hx-get=/sign-in hx-trigger=load hx-target=body>34</div>",
    "<p hx-on::load='window.ran=35' data-hx-on:click='window.ran=35'>35</p>",
    "{{ request.user.password }}{% debug %}",
    "${window.ran=37}`${alert(37)}`#{ran}",
    "\\u003cscript\\u003ewindow.ran=38\\u003c/script\\u003e",
    "%3Cscript%3Ewindow.ran=39%3C/script%3E &lt;script&gt;window.ran=39&lt;/script&gt;",
    "=cmd|' /C calc'!A0 \u202etxt.exe\u202c \u2028 window.ran=40",
)
