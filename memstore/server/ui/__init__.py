"""Pages for people at `/ui`: rendered here, without script. They change something only if the server allows it.

`app` has the routes and who may see which; `request` is what pages work with; `pages` and `contexts` are the pages.
"""
