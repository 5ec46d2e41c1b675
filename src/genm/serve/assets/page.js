// The page of the service. Everything it shows comes from /v1/stream; text is set as text, never as markup.
"use strict";
{
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 260;
  const EDGE = {left: 40, right: 12, top: 12, bottom: 24};
  const SHOWN_VERSIONS = 15;
  const byId = (id) => document.getElementById(id);
  let token = sessionStorage.getItem("genm-token");
  let asked = null;
  let paused = 0;
  let width = 900; // of the charts, as wide as the window lets them be, so that their text stays readable

  // Returns an element with attributes and children; strings become text.
  function h(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function svg(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  const headers = () => (token ? {authorization: `Bearer ${token}`} : {});
  const digits = (value, n = 4) => (value === null || value === undefined ? "\u2013" : value.toFixed(n));
  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString();
  const colour = (k) => `c${k % 8}`;

  function show(overview) {
    byId("login").hidden = true;
    byId("content").hidden = false;
    const failure = byId("failure");
    failure.hidden = overview.failure === null;
    failure.textContent = overview.failure === null ? "" : `The store cannot be written: ${overview.failure}`;
    width = Math.max(280, byId("content").clientWidth);
    showFigures(overview);
    showWeights(overview);
    showAp(overview);
    showPair(overview);
    showVersions(overview);
    showEvents(overview);
    showLatency(overview);
    document.documentElement.dataset.ready = String(overview.sequence);
  }

  function figure(label, value, note) {
    return h("div", {}, h("dt", {}, label), h("dd", {}, value, ...(note ? [h("small", {}, note)] : [])));
  }

  function showFigures(overview) {
    const ap = overview.running_ap;
    const fuse = overview.latency_ms["/v1/fuse"];
    byId("figures").replaceChildren(
      figure("Champion", `version ${overview.champion}`, `newest is ${overview.latest}`),
      figure("Events", overview.sequence.toLocaleString("en"), `${overview.event_rate.toFixed(1)} a second`),
      figure("Running AP", ap ? digits(ap.mean) : "\u2013",
        ap ? `95 %: ${digits(ap.low, 3)} to ${digits(ap.high, 3)}, ${ap.n_queries} queries` : "no judgments yet"),
      figure("Drift", ap && ap.drift_at !== null ? `since event ${ap.drift_at}` : "none",
        ap && ap.drift_at !== null ? "the mean has changed" : "the mean is steady"),
      figure("Fuse", fuse ? `${fuse[0].toFixed(1)} ms` : "\u2013", fuse ? `p99 ${fuse[1].toFixed(1)} ms` : "no requests yet"),
    );
  }

  function chart(label, x, y) {
    const drawing = svg("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label});
    for (const value of y.ticks) {
      const at = y.place(value);
      drawing.append(
        svg("line", {class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at}),
        svg("text", {x: EDGE.left - 6, y: at + 4, "text-anchor": "end"}, value.toFixed(2)),
      );
    }
    for (const value of x.ticks) {
      drawing.append(svg("text", {x: x.place(value), y: HEIGHT - 6, "text-anchor": "middle"}, String(value)));
    }
    return drawing;
  }

  function scale(low, high, from, to, ticks) {
    const span = high - low || 1;
    return {place: (value) => from + ((value - low) / span) * (to - from), ticks};
  }

  function axes(first, last, top) {
    const middle = Math.round((first + last) / 2);
    const x = scale(first, last, EDGE.left, width - EDGE.right - 10, [...new Set([first, middle, last])]);
    const y = scale(0, top, HEIGHT - EDGE.bottom, EDGE.top, [0, 1, 2, 3, 4, 5].map((fifth) => (fifth * top) / 5));
    return [x, y];
  }

  function showWeights(overview) {
    const versions = overview.versions;
    const most = Math.max(...versions.flatMap((one) => Object.values(one.weights)));
    const [x, y] = axes(versions[0].version, versions.at(-1).version, Math.ceil(most * 10) / 10);
    const now = overview.rankers.map((name) => `${name} ${digits(overview.weights[name], 3)}`).join(", ");
    const drawing = chart(`Weights by version; the champion has ${now}`, x, y);
    if (overview.champion >= versions[0].version) {
      const at = x.place(overview.champion);
      drawing.append(svg("line", {class: "champion", x1: at, x2: at, y1: EDGE.top, y2: HEIGHT - EDGE.bottom}));
    }
    overview.rankers.forEach((name, k) => {
      const points = versions.map((one) => [x.place(one.version), y.place(one.weights[name])]);
      const group = svg("g", {class: colour(k)});
      group.append(svg("polyline", {class: "series", points: points.map((pair) => pair.join(",")).join(" ")}));
      versions.forEach((one, i) => {
        if (versions.length > 60 && one.promoted) return;
        const kind = one.promoted ? "mark" : "hollow";
        group.append(svg("circle", {class: kind, cx: points[i][0], cy: points[i][1], r: 3}));
      });
      drawing.append(group);
    });
    byId("weights-chart").replaceChildren(drawing);
    byId("legend").replaceChildren(
      ...overview.rankers.map((name, k) => h("span", {class: colour(k)}, `${name} ${digits(overview.weights[name], 3)}`)),
    );
  }

  function showAp(overview) {
    const ap = overview.running_ap;
    const values = overview.ap_values;
    if (!ap || !values.length) {
      byId("ap-chart").replaceChildren();
      byId("ap-text").textContent = "Judgments that come in are measured under the champion before they are learned from.";
      return;
    }
    const [x, y] = axes(values[0][0], values.at(-1)[0], 1);
    const drawing = chart(`AP of ${values.length} judged queries; the mean is ${digits(ap.mean)}`, x, y);
    const from = x.place(Math.max(values[0][0], ap.drift_at ?? values[0][0]));
    const to = x.place(values.at(-1)[0]);
    drawing.append(
      svg("rect", {class: "band", x: from, width: Math.max(1, to - from), y: y.place(ap.high),
        height: Math.max(1, y.place(ap.low) - y.place(ap.high))}),
      svg("line", {class: "mean", x1: from, x2: to, y1: y.place(ap.mean), y2: y.place(ap.mean)}),
      ...values.map(([at, value]) => svg("circle", {class: "dot", cx: x.place(at), cy: y.place(value), r: 2.5})),
    );
    byId("ap-chart").replaceChildren(drawing);
    byId("ap-text").textContent = "Each query is measured under the champion before it is learned from. "
      + "The line is the mean since the last drift, the band its 95 % interval.";
  }

  function table(header, rows) {
    const line = (cells, kind) => h("tr", {}, ...cells.map((cell) => h(kind, kind === "th" ? {scope: "col"} : {}, cell)));
    return h("table", {}, h("thead", {}, line(header, "th")), h("tbody", {}, ...rows.map((row) => line(row, "td"))));
  }

  function showPair(overview) {
    const champion = overview.versions.find((one) => one.version === overview.champion);
    const newest = overview.versions.at(-1);
    const other = newest.version === overview.champion ? null : newest;
    const header = ["ranker", `champion (${overview.champion})`, ...(other ? [`challenger (${other.version})`] : [])];
    const rows = overview.rankers.map((name) => [
      name, digits(overview.weights[name]), ...(other ? [digits(other.weights[name])] : []),
    ]);
    rows.push(["recent AP", digits(other ? other.champion_recent_ap : champion?.recent_ap),
      ...(other ? [digits(other.recent_ap)] : [])]);
    byId("pair").replaceChildren(table(header, rows));
    const found = overview.comparison;
    byId("verdict").textContent = !other ? "The newest version is the champion."
      : found && found.wins + found.losses + found.ties
        ? `Interleaved lists: ${found.wins} for the champion, ${found.losses} for the challenger, ${found.ties} even; `
          + `p ${digits(found.p_value, 3)}: ${found.verdict}.`
        : "No lists of the two were interleaved yet.";
  }

  function showVersions(overview) {
    const header = ["version", "action", "time", "made by", ...overview.rankers, "queries", "recent AP", "promoted"];
    const rows = overview.versions.slice(-SHOWN_VERSIONS).reverse().map((one) => {
      const button = h("button", {type: "button", "aria-label": `Roll back to version ${one.version}`}, "Roll back");
      button.addEventListener("click", () => ask(one.version));
      const last = one.version === overview.champion ? "champion" : overview.may_roll_back ? button : "";
      return [String(one.version), last, clock(one.created), one.reason,
        ...overview.rankers.map((name) => digits(one.weights[name], 3)), String(one.n_seen), digits(one.recent_ap),
        one.promoted ? "yes" : "no"];
    });
    if (!byId("versions").contains(document.activeElement) || document.activeElement === byId("versions")) {
      byId("versions").replaceChildren(table(header, rows));
    }
  }

  function showEvents(overview) {
    const rows = overview.events.map((one) => [
      String(one.sequence), clock(one.at), one.kind, one.outcome, String(one.version),
    ]);
    byId("events").replaceChildren(table(["event", "time", "kind", "outcome", "version"], rows));
  }

  function showLatency(overview) {
    const rows = Object.entries(overview.latency_ms).map(([route, [middle, high]]) => [
      route, middle.toFixed(1), high.toFixed(1),
    ]);
    byId("latency").replaceChildren(table(["route", "median ms", "p99 ms"], rows));
  }

  function ask(version) {
    asked = version;
    byId("ask-text").textContent = `Serve version ${version}, and go on learning from it? The other versions are kept.`;
    byId("ask").showModal();
  }

  async function rollBack() {
    byId("ask").close();
    const key = `page-${crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`}`;
    const answer = await fetch("v1/rollback", {
      method: "POST",
      headers: {...headers(), "content-type": "application/json"},
      body: JSON.stringify({version: asked, key}),
    });
    if (!answer.ok) {
      const problem = await answer.json();
      byId("failure").textContent = problem.error.message;
      byId("failure").hidden = false;
    }
    document.activeElement.blur();
  }

  function say(text) {
    if (byId("connection").textContent !== text) byId("connection").textContent = text;
  }

  // Reads server-sent events by fetch, because EventSource cannot send a token.
  async function follow() {
    const answer = await fetch("v1/stream", {headers: headers()});
    if (answer.status === 401 || answer.status === 403) {
      byId("login").hidden = false;
      byId("content").hidden = true;
      say("A token is needed");
      return false;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return true;
      text += value;
      const parts = text.split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        if (data) show(JSON.parse(data));
      }
      paused = 0;
      say("Live");
    }
  }

  async function run() {
    try {
      if (!(await follow())) return;
    } catch {
      // The service is away: try again below.
    }
    say("The service does not answer; trying again");
    paused = Math.min(10000, 500 + 2 * paused);
    setTimeout(run, paused);
  }

  function useToken() {
    token = byId("token").value.trim();
    sessionStorage.setItem("genm-token", token);
    run();
  }

  byId("use-token").addEventListener("click", useToken);
  byId("token").addEventListener("keydown", (event) => {
    if (event.key === "Enter") useToken();
  });
  byId("ask-yes").addEventListener("click", rollBack);
  byId("ask-no").addEventListener("click", () => byId("ask").close());
  run();
}
