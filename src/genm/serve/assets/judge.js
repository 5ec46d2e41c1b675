// The page for judging. Text of queries and documents is set as text, never as markup.
"use strict";
{
  const byId = (id) => document.getElementById(id);
  const WORD = /[\p{L}\p{N}]+/gu;
  const COMMON = new Set(("a an and are as at be by can do does for from has have how in is it its of on or that the "
    + "their there these they this to was were what when where which who why will with").split(" "));
  let token = sessionStorage.getItem("genm-token");
  let shown = null;
  let deciding = false;
  let busy = false;

  // Returns an element with attributes and children; strings become text.
  function h(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const judge = () => byId("judge").value.trim() || "local";

  // The same word in another form counts as a match: a crude stem is enough to guide the eye.
  function stem(word) {
    const small = word.toLowerCase();
    return small.length > 4 ? small.replace(/(ings?|edly|ed|es|s|ly)$/u, "") : small;
  }

  function marked(text, query) {
    const wanted = new Set([...query.matchAll(WORD)].map((found) => found[0]).filter((word) => !COMMON.has(word.toLowerCase())).map(stem));
    const parts = [];
    let at = 0;
    for (const found of text.matchAll(WORD)) {
      if (!wanted.has(stem(found[0]))) continue;
      parts.push(text.slice(at, found.index), h("mark", {}, found[0]));
      at = found.index + found[0].length;
    }
    parts.push(text.slice(at));
    return parts;
  }

  async function ask(method, path, body) {
    const headers = token ? {authorization: `Bearer ${token}`} : {};
    if (body) headers["content-type"] = "application/json";
    const response = await fetch(path, {method, headers, body: body && JSON.stringify(body)});
    if (response.status === 401) {
      byId("login").hidden = false;
      byId("content").hidden = true;
      byId("state").textContent = "Waiting for a token";
      byId("token").focus();
      return null;
    }
    if (!response.ok) {
      const answer = await response.json().catch(() => null);
      throw new Error(answer ? answer.error.message : `the server answered ${response.status}`);
    }
    return response;
  }

  // Sends a step again with the same key until the server has it: the page never shows as stored what is not.
  async function step(path, body) {
    if (busy) return;
    busy = true;
    setDisabled(true);
    byId("state").textContent = "Saving";
    try {
      for (let attempt = 0; ; attempt += 1) {
        try {
          const response = await ask("POST", path, {...body, judge: judge()});
          if (response) show(await response.json(), "Saved");
          break;
        } catch (error) {
          if (!(error instanceof TypeError) || attempt === 4) throw error;
          byId("state").textContent = "No connection: trying again";
          await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
        }
      }
    } catch (error) {
      fail(`Not saved: ${error.message}`);
    } finally {
      busy = false;
      setDisabled(false);
    }
  }

  function fail(text) {
    byId("failure").hidden = false;
    byId("failure").textContent = text;
    byId("state").textContent = "Not saved";
  }

  function setDisabled(value) {
    for (const button of document.querySelectorAll("#task button, #done button")) button.disabled = value;
  }

  function show(answer, state) {
    byId("login").hidden = true;
    byId("failure").hidden = true;
    byId("content").hidden = false;
    byId("state").textContent = state;
    if (token) byId("judge").value = answer.judge;
    byId("judge").readOnly = Boolean(token);
    deciding = false;
    showGrades(answer.labels);
    showPair(answer.next);
    showProgress(answer.progress);
    document.documentElement.dataset.ready = answer.next ? `${answer.next.query_id} ${answer.next.document_id}` : "done";
  }

  function showPair(pair) {
    const before = shown;
    shown = pair;
    byId("task").hidden = pair === null;
    byId("done").hidden = pair !== null;
    byId("note").value = "";
    if (pair === null) return;
    byId("query-id").textContent = pair.query_id;
    byId("query").textContent = pair.query;
    byId("document-id").textContent = `Document ${pair.document_id}`;
    byId("text").replaceChildren(...marked(pair.text, pair.query));
    byId("cut").hidden = pair.n_cut === 0;
    byId("cut").textContent = `${pair.n_cut.toLocaleString("en")} further characters are not shown.`;
    byId("document").scrollTop = 0;
    if (before) byId("document").focus({preventScroll: false});
  }

  function showGrades(labels) {
    if (byId("grades").childElementCount) return;
    byId("grades").replaceChildren(...labels.map((label, grade) => {
      const button = h("button", {type: "button"}, h("kbd", {}, String(grade)), ` ${label}`);
      button.addEventListener("click", () => send("grade", grade));
      return button;
    }));
  }

  function figure(label, value, note) {
    return h("div", {}, h("dt", {}, label), h("dd", {}, value, ...(note ? [h("small", {}, note)] : [])));
  }

  function showProgress(progress) {
    const count = (number) => number.toLocaleString("en");
    const people = Object.entries(progress.judges).map(([name, n]) => `${name} ${count(n)}`).join(", ");
    byId("figures").replaceChildren(
      figure("Judged", count(progress.n_judged), `${count(progress.n_waiting)} still useful`),
      figure("Queries", count(progress.n_queries_relevant), `with a relevant document, of ${count(progress.n_queries)} judged`),
      figure("Pace", progress.per_minute === null ? "\u2013" : `${progress.per_minute.toFixed(1)} a minute`, people || "nobody yet"),
    );
    const standing = progress.standing;
    byId("weights").replaceChildren(...(standing ? Object.entries(standing.weights).flatMap(([name, weight]) => {
      const [low, high] = standing.intervals[name] ?? [weight, weight];
      return [
        h("span", {}, name),
        h("meter", {min: 0, max: 1, value: weight, "aria-label": `weight of ${name}`}),
        h("span", {}, `${weight.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`),
      ];
    }) : []));
    byId("sentence").textContent = standing ? standing.sentence : progress.failure ?? "Weights come after the first judgments.";
    byId("outlook").textContent = standing ? standing.outlook : "";
    if (progress.n_disputed === 0) byId("disputed").replaceChildren(h("p", {class: "muted"}, "None so far."));
    else showDisputed();
  }

  async function showDisputed() {
    try {
      const response = await ask("GET", `v1/disputed?judge=${encodeURIComponent(judge())}`);
      if (!response) return;
      const rows = (await response.json()).slice(0, 10).map(({shown: pair, grades}) => {
        const said = Object.entries(grades).map(([name, grade]) => `${name} ${grade}`).join(", ");
        const button = h("button", {type: "button", class: "disputed"}, `${pair.query_id} / ${pair.document_id}: ${said}`);
        button.addEventListener("click", () => {
          deciding = true;
          showPair(pair);
          byId("state").textContent = "Your grade decides this disagreement";
        });
        return button;
      });
      byId("disputed").replaceChildren(...rows);
    } catch (error) {
      byId("disputed").replaceChildren(h("p", {class: "muted"}, error.message));
    }
  }

  function send(action, grade = null) {
    if (shown === null) return;
    const named = action === "grade" && deciding ? "decide" : action;
    step("v1/opinions", {
      key: newKey(), query: shown.query_id, document: shown.document_id, action: named, grade, note: byId("note").value,
    });
  }

  const undo = () => step("v1/undo", {key: newKey()});

  async function download(format) {
    try {
      const response = await ask("GET", `v1/judgments?format=${format}&judge=${encodeURIComponent(judge())}`);
      if (!response) return;
      const link = h("a", {href: URL.createObjectURL(await response.blob()), download: `judgments.${format === "trec" ? "qrels" : format}`});
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      fail(error.message);
    }
  }

  async function begin() {
    try {
      const response = await ask("GET", `v1/next?judge=${encodeURIComponent(judge())}`);
      if (response) show(await response.json(), "Ready");
    } catch (error) {
      fail(error.message);
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement) {
      if (event.key === "Escape" || (event.key === "Enter" && event.target.id === "note")) byId("document").focus();
      return;
    }
    if (/^[0-3]$/u.test(event.key)) send("grade", Number(event.key));
    else if (event.key === "u") send("unsure");
    else if (event.key === "s") send("skip");
    else if (event.key === "z") undo();
    else if (event.key === "n") byId("note").focus();
    else return;
    event.preventDefault();
  });
  byId("unsure").addEventListener("click", () => send("unsure"));
  byId("skip").addEventListener("click", () => send("skip"));
  byId("undo").addEventListener("click", undo);
  byId("undo-last").addEventListener("click", undo);
  byId("use-token").addEventListener("click", () => {
    token = byId("token").value.trim();
    sessionStorage.setItem("genm-token", token);
    byId("token").value = "";
    begin();
  });
  byId("judge").value = localStorage.getItem("genm-judge") ?? "local";
  byId("judge").addEventListener("change", () => {
    localStorage.setItem("genm-judge", judge());
    begin();
  });
  for (const button of document.querySelectorAll("[data-format]")) button.addEventListener("click", () => download(button.dataset.format));
  begin();
}
