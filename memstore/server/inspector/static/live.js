// Puts what the server draws into the page as it changes. Without this, "Look again" does the same.
"use strict";
const state = document.getElementById("live-state");
const live = document.getElementById("live");
if (state && live && "EventSource" in window) {
  const say = (text) => { state.textContent = text; };
  const source = new EventSource(state.dataset.live);
  source.addEventListener("open", () => say("Live."));
  source.addEventListener("error", () => say(source.readyState === EventSource.CLOSED
    ? "Not live any more: look again." : "Not live now: trying to reach the server again."));
  source.addEventListener("changed", (event) => {
    if (live.contains(document.activeElement)) return; // a button must not go from under a finger
    const drawn = new DOMParser().parseFromString(event.data, "text/html");
    live.replaceChildren(...drawn.body.childNodes);
  });
  addEventListener("pagehide", () => source.close());
}
