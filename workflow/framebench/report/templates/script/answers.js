// Answers of the first screen, drawn anew for what the filter leaves.
const BLOCKS = 6;
const ANSWERS = 12;
const fastest = page.tables.find((table) => table.name === "fastest");
const { contests } = page;
const ofContest = (name, at) => valuesOf(contests[name], contests.count)[at];
const ofEntrant = (name, at) => valuesOf(contests.entrants[name], contests.entrants.count)[at];

// Return the numbers of the entrants of each setting.
const entrants = Array.from({ length: contests?.count ?? 0 }, () => []);
if (entrants.length) valuesOf(contests.entrants.at, contests.entrants.count).forEach((at, one) => entrants[at].push(one));

const medianOf = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2;
};
const repeatsOf = (one) => page.cases.repeats[ofEntrant("case", one)];
const wordsIn = (text) => text.split("\t").filter(Boolean);
const digits = (value) =>
  value < 1e4 && value >= 1e-4 ? value.toPrecision(4) : value < 1e7 && value >= 1e4 ? value.toFixed(0) : value.toExponential(3);

// Return what is known of a setting, of the chosen frameworks and compilers: the fastest case of
// each framework, best first.
const contestOf = (at) => {
  const found = new Map();
  for (const one of entrants[at]) {
    const framework = ofEntrant("framework", one);
    const isIn = isChosen("framework", framework) && isChosen("compiler", ofEntrant("compiler", one));
    if (isIn && !found.has(framework)) found.set(framework, one);
  }
  const isIn = (text) => isChosen("framework", text.split(" ")[0]);
  return {
    at,
    entrants: [...found.values()],
    without: wordsIn(ofContest("without", at)).filter(isIn),
    missing: wordsIn(ofContest("missing", at)).filter(isIn),
    leftOut: wordsIn(ofContest("left_out", at)).filter(isIn),
    better: ofContest("better", at),
  };
};

const colourOf = (framework) => `var(--series-${(page.series[framework] ?? 7) + 1})`;
const whoHtml = (framework, label) =>
  `<span class="who"><span class="dot" style="background:${colourOf(framework)}"></span>${escaped(label)}</span>`;

const blockHtml = (contest) => {
  const best = medianOf(repeatsOf(contest.entrants[0]));
  const share = (value) => 100 * (contest.better === "higher" ? value / best : value ? best / value : 0);
  const ends = contest.entrants.map((one) => {
    const interval = [ofEntrant("low", one), ofEntrant("high", one)];
    return (interval[0] === null ? repeatsOf(one) : interval).map(share).sort((a, b) => a - b);
  });
  const width = Math.max(100, ...ends.map((some) => some[some.length - 1])) / 100;
  const at = (value) => (value / width).toFixed(1);
  const bars = contest.entrants.map((one, place) => {
    const framework = ofEntrant("framework", one);
    const some = ends[place];
    const median = medianOf(repeatsOf(one));
    const flags = ofEntrant("low", one) === null
      ? some.map((value) => `<i class="point" style="left:${at(value)}%"></i>`).join("")
      : `<i class="bar" style="width:${at(share(median))}%"></i>` +
        `<i class="whisker" style="left:${at(some[0])}%;width:${at(some[1] - some[0])}%"></i>`;
    const peak = ofEntrant("peak", one);
    const about = `${ofEntrant("slow", one) ? ' class="slow"' : ""}${peak ? ` data-tip="${escaped(peak)}"` : ""}`;
    return `<li${about}>${whoHtml(framework, ofEntrant("label", one))}<span class="track" aria-hidden="true" ` +
      `style="color:${colourOf(framework)}">${flags}</span><span class="number">${digits(median)}</span></li>`;
  });
  const others = [
    ...contest.without.map((text) => text.split(" ")).map(([name, status]) => [name, contests.status[status] ?? status]),
    ...contest.missing.map((name) => [name, "not measured yet"]),
    ...contest.leftOut.map((name) => [name, "left out"]),
  ].map(([name, why]) => `<li>${whoHtml(name, name)}<span class="why">${escaped(why)}</span></li>`);
  return `<div class="contest"><h3>${escaped(ofContest("settings", contest.at))} <span class="muted">` +
    `${escaped(ofContest("units", contest.at))}</span></h3><ol>${[...bars, ...others].join("")}</ol></div>`;
};

// Return ratio and interval of the two fastest; null without two, or while one is not measured.
const leadOf = (contest) => {
  const [one, other] = contest.entrants;
  if (other === undefined || contest.missing.length) return null;
  const [figure, next] = [one, other].map((entrant) => medianOf(repeatsOf(entrant)));
  const ratio = contest.better === "higher" ? figure / next : next / figure;
  return { ratio, interval: contests.pairs[`${one} ${other}`] ?? null, next: ofEntrant("label", other) };
};

const verdictOf = (contest, lead, isNarrow) => {
  if (!isNarrow) return ofContest("verdicts", contest.at);
  if (contest.missing.length) return `not measured yet: ${contest.missing.join(", ")}`;
  if (!lead) return contest.entrants.length ? "nothing to compare" : "no figure";
  if (!lead.interval) return "too few repeats";
  return lead.interval[0] > 1 ? "interval above 1" : "interval includes 1";
};

const answerHtml = (contest, isNarrow) => {
  const [first] = contest.missing.length ? [] : contest.entrants;
  const lead = leadOf(contest);
  const known = first !== undefined;
  const name = known
    ? `<span class="dot" style="background:${colourOf(ofEntrant("framework", first))}"></span><b>${escaped(ofEntrant("label", first))}</b>`
    : DASH;
  const figure = known ? `${digits(medianOf(repeatsOf(first)))} ${escaped(ofContest("units", contest.at))}` : DASH;
  const sides = known ? contest.entrants.slice(0, 2) : [];
  const flags = [...new Set(sides.flatMap((one) => ofEntrant("flags", one).split(" ").filter(Boolean)))].sort();
  const ends = lead?.interval?.map((end) => end.toFixed(2)).join(` ${DASH} `);
  const words = lead
    ? `${lead.ratio.toFixed(2)} \u00d7 ${escaped(lead.next)}${ends ? ` <span class="why">(${ends})</span>` : ""}`
    : DASH;
  const verdict = verdictOf(contest, lead, isNarrow);
  const look = verdict === "significant" || verdict === "interval above 1" ? " status ok" : "";
  const tried = contest.entrants.length + contest.without.length + contest.missing.length;
  return `<tr data-answer="${contest.at}"><td class="case">${escaped(ofContest("settings", contest.at))}</td><td>${name}</td>` +
    `<td class="number figure">${figure}${flags.length ? ` <span class="why">${flags.join(" ")}</span>` : ""}</td><td>${words}</td><td class="verdict${look}">${escaped(verdict)}</td>` +
    `<td class="number of">${contest.entrants.length} of ${tried}</td></tr>`;
};

// Say how frameworks compare over all settings that the filter leaves. Verdicts of leads hold
// unless it leaves out frameworks or compilers.
const sentenceOf = (some, isNarrow) => {
  const leads = some.map((contest) => [contest, leadOf(contest)]).filter(([, lead]) => lead);
  if (!leads.length) return "The filter leaves nothing to compare.";
  if (!isNarrow) {
    const shown = leads.filter(([contest]) => ofContest("verdicts", contest.at) === "significant");
    return `The filter leaves ${leads.length} of all leads; ${shown.length} ${shown.length === 1 ? "is" : "are"} significant.`;
  }
  const wins = new Map();
  for (const [contest] of leads) {
    const name = ofEntrant("framework", contest.entrants[0]);
    wins.set(name, (wins.get(name) ?? 0) + 1);
  }
  const ahead = [...wins].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} in ${count}`);
  const above = leads.filter(([, lead]) => lead.interval?.[0] > 1).length;
  return `Of ${leads.length} setting${leads.length === 1 ? "" : "s"}, ahead is ${ahead.join(", ")}; the interval of the lead lies above 1 in ${above}. ` +
    "An interval is that of one ratio, not adjusted for several.";
};

// Return places and HTML of the answers as they were written for all frameworks.
const places = ["#contests", "#answer", "#answers tbody.of-settings"].map((one) => document.querySelector(one));
const written = places.map((place) => place?.innerHTML);

const showContests = () => {
  if (!places[2]) return;
  places.forEach((place, at) => place && (place.innerHTML = written[at]));
  const left = document.getElementById("answers-hidden");
  left.hidden = true;
  if (!asked.chosen.size) return;
  const isNarrow = asked.chosen.has("framework") || asked.chosen.has("compiler");
  const rows = entrants.map((_, at) => at).filter(testOf(fastest));
  const some = rows.map(contestOf).filter((one) => one.entrants.length || one.without.length || one.missing.length);
  // The settings that compare most frameworks, in their order.
  const ranked = [...some].sort((a, b) => b.entrants.length - a.entrants.length).slice(0, ANSWERS);
  const shown = ranked.sort((a, b) => a.at - b.at);
  places[2].innerHTML = shown.map((one) => answerHtml(one, isNarrow)).join("");
  if (places[0]) {
    const drawn = shown.filter((one) => one.entrants.length).slice(0, BLOCKS);
    places[0].innerHTML = drawn.map(blockHtml).join("");
  }
  places[1].textContent = sentenceOf(some, isNarrow);
  const words = [`Of the settings that the filter leaves, ${shown.length} of ${some.length} are shown.`];
  if (isNarrow && asked.base) words.push("Figures of chosen frameworks or compilers stand as measured here, whatever the baseline.");
  left.hidden = some.length === shown.length && words.length === 1;
  left.textContent = words.join(" ");
};
