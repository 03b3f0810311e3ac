"""Pages for people at `/ui`: rendered here, without script. They change something only if the server allows it.

`app` has the routes and who may see which; `request` is what pages work with. Each of the other modules is the pages
about one thing.
"""
