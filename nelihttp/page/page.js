"use strict";
(() => {
  const main = document.querySelector("main"), note = document.querySelector("#note");
  const every = 5000, together = 50;
  let timer, soon, busy = false, again = false;

  // Only the server renders the page: after a change, load fetches it again and replaces the main part.
  async function load() {
    clearTimeout(timer);
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, {cache: "no-store", signal: AbortSignal.timeout(every)});
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (!next) throw new Error("status " + answer.status);
      // The focus stays where it was, and text that is being typed is kept.
      const links = "a, button, input", at = [...main.querySelectorAll(links)].indexOf(document.activeElement);
      const typed = document.activeElement.value;
      main.replaceChildren(...next.childNodes);
      const same = main.querySelectorAll(links)[at];
      if (same) {
        same.focus({preventScroll: true});
        if (typed !== undefined && same.name) same.value = typed;
      }
      main.className = note.textContent = "";
    } catch (e) {
      if (!main.className) note.textContent = "No answer from this process since " + new Date().toLocaleTimeString() + ". The page shows the state before that.";
      main.className = "stale";
    }
    busy = false;
    timer = setTimeout(load, again ? together : main.querySelector(".quiet") ? 1000 : every);
    again = false;
  }
  function changed() { clearTimeout(soon); soon = setTimeout(load, together); }
  function listen() {
    const events = new EventSource("events");
    for (const kind of ["standing", "standings", "end"]) events.addEventListener(kind, changed);
    events.onerror = () => { if (events.readyState === EventSource.CLOSED) setTimeout(listen, every); };
  }
  timer = setTimeout(load, every);
  listen();
})();
