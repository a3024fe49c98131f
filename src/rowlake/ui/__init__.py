"""`rowlake ui`: one local web page for a lake, to look rather than read.

Comes in: a lake. Goes out: pages for a browser on this machine. Server-rendered HTML by the
standard library, one style sheet, one small script, no asset from anywhere else.

- `markup` builds HTML that is escaped by construction; `pictures` are bars and ranges in SVG;
- `looks`, `layouts`, `pasts`, `diffs` gather what pages show, without a JVM;
- `pages` are one module per page; `frame` is what all of them share;
- `gate` decides who may ask (host, token, CSRF); `server` listens on 127.0.0.1 and routes;
- `operations` runs what `--allow-actions` lets a person start, one at a time.
"""
