"""The inspector: pages for people at `/ui`, made here and whole without script. They change something only if allowed.

`app` has the routes; `visit` is one request: who asks, what of, the form that came, the page that goes. Each of the
other modules is the pages about one thing; `pictures` and `drawing` are how that looks, `links` where it stands.
"""
