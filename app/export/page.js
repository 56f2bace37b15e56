// The page: reads the recording that lies in it, answers keys and the mouse, and paints while something moves.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($('data').textContent);
data.rounds.forEach(prepare);
for (const round of data.rounds) round.boxOf = Object.fromEntries(round.boxes.map((box) => [box[0], box]));

const reduced = matchMedia('(prefers-reduced-motion: reduce)');
const player = new Player(data.rounds, data.phases, reduced.matches);
const COLOURS = ['canvas', 'panel', 'card', 'raised', 'text', 'text2', 'text3', 'accent', 'accent_text', 'accent_bg', 'ctl',
                 'line', 'accepted', 'rejected', 'unreached', 'bonus', 'limb', 'limb_unreached', 'limb_rejected',
                 'limb_rejected_bg', 'twig', 'accepted_text', 'rejected_text', 'bonus_text', 'accepted_bg', 'bonus_bg',
                 'on_state', 'draft', 'verify', 'rest'];
const colours = {};
const painter = new Painter($('tree'), colours, data.labels);
let hovered = -1, drawn = '', before = 0;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOURS) colours[name] = style.getPropertyValue('--' + name.replaceAll('_', '-')).trim();
  drawn = '';
}

const number = (value, digits) => value.toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
const grouped = (value) => number(value, 0);
const milliseconds = (ms) => number(ms, ms < 100 ? 2 : ms < 1000 ? 1 : 0) + ' ms';

/// Makes the canvas as sharp as the screen. Returns pixels of the screen for each of the canvas's own.
function fitted(canvas, w, h) {
  const ratio = canvas.clientWidth / w * (window.devicePixelRatio || 1);
  const width = Math.max(1, Math.round(w * ratio)), height = Math.max(1, Math.round(h * ratio));
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return ratio;
}

function span(text, kind) {
  const out = document.createElement('span');
  out.textContent = text;
  if (kind) out.className = kind;
  return out;
}

// ---- the text ---------------------------------------------------------------------------------------------------------

const replyOf = (round) => data.replies.findLastIndex((reply) => reply.first <= round);
const textEnd = span('', 'end'); // where the text has come to
let shownReply = -1, pieces = [];

function showText() {
  const index = Math.max(0, replyOf(player.shown)), reply = data.replies[index];
  if (index !== shownReply) {
    shownReply = index;
    $('question').textContent = reply.question;
    $('question').hidden = !reply.question;
    pieces = reply.pieces.map(([text, round, kind]) => {
      const out = span(text, kind);
      if (round >= 0) out.dataset.round = round;
      return {round, out};
    });
    $('reply').replaceChildren(...pieces.map((each) => each.out));
  }
  const until = player.told ? player.shown : player.shown - 1;
  let last = null;
  for (const each of pieces) {
    each.out.hidden = each.round > until;
    each.out.classList.toggle('now', each.round === player.shown);
    if (!each.out.hidden) last = each.out;
  }
  if (last) last.after(textEnd);
  else $('reply').prepend(textEnd);
  const box = $('reply');
  const below = textEnd.offsetTop + textEnd.offsetHeight - box.scrollTop - box.clientHeight;
  if (below > 0) box.scrollTop += below + 24;
  else if (textEnd.offsetTop < box.scrollTop) box.scrollTop = Math.max(0, textEnd.offsetTop - 40);
}

// ---- the words above and below the tree -------------------------------------------------------------------------------

function showWords(round, rev) {
  const slow = player.slow && !rev.whole;
  if (slow) {
    const phase = data.phases[player.phase];
    $('caption').replaceChildren(span((player.phase + 1) + '  ' + phase.name, 'phase'),
                                 span(round.said?.[player.phase] ?? phase.words.replace('{n}', round.emitted)));
  } else {
    $('caption').replaceChildren(...round.caption.map(([kind, text]) => span(text, kind)));
  }
  $('pass').textContent = 'pass ' + grouped(round.number) + ' of ' + grouped(data.total);
  $('tree').setAttribute('aria-label', round.caption.map((part) => part[1]).join(''));
  const counts = [0, 0, 0, 0, 0];
  rev.nodes.forEach((node, i) => {
    const fate = round.f[i], lit = fate !== FATE.accepted || node.lit >= 1;
    if (node.judged && lit && (fate !== FATE.bonus || node.shown > 0)) ++counts[fate];
  });
  ['accepted', 'rejected', 'notReached', 'bonus'].forEach((name) => { $(name).textContent = grouped(counts[FATE[name]]); });
  $('own').textContent = round.plain ? 'big model\u2019s own' : 'bonus';
  const found = rev.nodes.filter((node, i) => isFound(round, i) && node.shown > 0).length;
  if ($('found')) $('found').textContent = grouped(found);
  const checked = !player.slow || player.phase > PHASE.verify;
  $('width').textContent = grouped(round.width);
  $('emitted').textContent = player.told ? grouped(round.emitted) : '\u2026';
  $('ms').textContent = checked ? milliseconds(round.ms) : '\u2026';
  $('why').textContent = round.reason;
  document.querySelectorAll('#phases button').forEach((button, i) => {
    button.setAttribute('aria-pressed', String(player.slow && player.phase === i));
    button.style.setProperty('--progress', player.slow && player.phase === i ? player.progress : 0);
  });
}

function showControls() {
  $('play').setAttribute('aria-label', player.playing ? 'Pause' : 'Play');
  $('play').classList.toggle('playing', player.playing);
  $('slow').setAttribute('aria-pressed', String(player.slow));
  $('phases').hidden = !player.slow;
  $('scrub').value = player.shown;
  $('scrub').setAttribute('aria-valuetext', 'pass ' + data.rounds[player.shown].number);
}

// ---- the strip of rounds ----------------------------------------------------------------------------------------------

function paintStrip() {
  const canvas = $('strip'), w = canvas.clientWidth, h = canvas.clientHeight, c = canvas.getContext('2d');
  const fit = fitted(canvas, w, h), count = data.rounds.length;
  const most = Math.max(2, ...data.rounds.map((round) => round.emitted)), pitch = w / count;
  c.setTransform(fit, 0, 0, fit, 0, 0);
  c.clearRect(0, 0, w, h);
  const foot = data.rounds.some((round) => round.fromText) ? 6 : 2;
  const bar = clamp(pitch * 0.66, 0.5, 20), inset = (pitch - bar) / 2, unit = (h - 8 - foot) / most;
  data.rounds.forEach((round, i) => {
    const x = i * pitch + inset, top = h - foot - unit * round.emitted;
    const cap = round.bonus >= 0 ? Math.min(unit, 2.5) : 0;
    c.globalAlpha = i <= player.shown ? 1 : 0.35;
    c.fillStyle = colours.accepted;
    c.fillRect(x, top + cap, bar, Math.max(0, unit * round.emitted - cap));
    c.fillStyle = colours.bonus;
    c.fillRect(x, top, bar, cap);
    c.fillStyle = colours.text2;
    if (round.fromText) c.fillRect(x, h - 3, bar, 2); // a line below passes whose guesses are from the text alone
  });
  c.globalAlpha = 1;
  c.fillStyle = colours.line;
  c.fillRect(0, h - foot, w, 1);
  for (const reply of data.replies) if (reply.first > 0) c.fillRect(reply.first * pitch, 0, 1, h);
  c.strokeStyle = colours.text;
  c.lineWidth = 1.5;
  c.strokeRect(player.shown * pitch + inset - 2, 1, bar + 4, h - 2);
}

function roundAt(event) {
  const canvas = $('strip'), pitch = canvas.clientWidth / data.rounds.length;
  return Math.floor((event.clientX - canvas.getBoundingClientRect().left) / pitch);
}

// ---- pointing ---------------------------------------------------------------------------------------------------------

function nodeAt(event) {
  const box = $('tree').getBoundingClientRect(), fit = data.canvas.w / box.width, round = data.rounds[player.shown];
  const x = (event.clientX - box.left) * fit, y = (event.clientY - box.top) * fit, half = Math.max(10, round.pill / 2);
  const found = round.boxes.find((b) => x >= b[1] - 7 && x <= b[1] + b[3] && Math.abs(y - b[2]) <= half);
  return found ? found[0] : -1;
}

const STATES = ['the last token of the text so far', 'guessed by the drafter, and right', 'guessed, and the big model wrote another',
                'guessed, but below a guess that was wrong', "the big model's own next token"];

function stateOf(round, node) {
  const byText = round.s[node] === SOURCE.text && round.f[node] === FATE.accepted;
  return byText ? 'guessed, and right' : STATES[round.f[node]];
}

function showCard(event) {
  const round = data.rounds[player.shown], card = $('card');
  card.hidden = hovered < 0;
  if (hovered < 0) return;
  const rows = [[stateOf(round, hovered)]];
  if (isFound(round, hovered))
    rows.push(['found in the text: its last ' + (round.match === 1 ? 'token' : grouped(round.match) + ' tokens') +
               ' stood there already and went on like this']);
  if (isDrafted(round, hovered)) rows.push(['guessed with ' + percentage(round.q[hovered])]);
  if (round.t[hovered] >= 0) rows.push(['the big model gave it ' + percentage(round.t[hovered])]);
  card.replaceChildren(span(data.labels[round.l[hovered]], 'token'), ...rows.map(([words]) => span(words)));
  const stage = $('stage').getBoundingClientRect();
  card.style.left = clamp(event.clientX - stage.left + 14, 0, Math.max(0, stage.width - 260)) + 'px';
  card.style.top = (event.clientY - stage.top + 18) + 'px';
}

// ---- frames -----------------------------------------------------------------------------------------------------------

function paintTree(round, rev) {
  const fit = fitted($('tree'), data.canvas.w, data.canvas.h);
  painter.numbered = player.slow && player.phase === PHASE.insert;
  painter.paint(round, rev, data.canvas, fit, hovered);
  if (!player.slow || player.phase !== PHASE.commit || player.told) return;
  const end = textEnd.getBoundingClientRect(), box = $('tree').getBoundingClientRect();
  const scale = data.canvas.w / box.width;
  painter.flying(player.progress, {x: (end.left - box.left) * scale, y: clamp((end.top - box.top) * scale, 0, data.canvas.h)});
}

/// Paints what has changed since the last frame, and asks for another one while something moves.
function frame(now) {
  if (before) player.advance(now - before);
  before = player.playing ? now : 0;
  const round = data.rounds[player.shown];
  const state = [player.shown, player.slow, player.phase, player.progress, hovered, player.playing, innerWidth,
                 devicePixelRatio].join();
  if (state !== drawn) {
    drawn = state;
    const rev = player.slow ? reveal(round, player.phase, player.progress) : reveal(round, PHASE.commit, 1);
    showText();
    showWords(round, rev);
    showControls();
    paintTree(round, rev);
    paintStrip();
  }
  if (player.playing) requestAnimationFrame(frame);
}

let asked = false;
function wake() {
  if (asked || player.playing && before) return;
  asked = true;
  requestAnimationFrame((now) => {
    asked = false;
    frame(now);
  });
}

function act(change) {
  change();
  wake();
}

// ---- input ------------------------------------------------------------------------------------------------------------

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 10];
function changeSpeed(by) {
  const at = SPEEDS.indexOf(player.speed);
  player.speed = SPEEDS[clamp(at + by, 0, SPEEDS.length - 1)];
  $('speed').value = player.speed;
}

const KEYS = {
  ' ': () => player.toggle(),
  'k': () => player.toggle(),
  'ArrowRight': () => player.step(1),
  'ArrowLeft': () => player.step(-1),
  'PageDown': () => player.step(1),
  'PageUp': () => player.step(-1),
  'Home': () => player.show(0),
  'End': () => player.show(player.lastRound),
  's': () => player.setSlow(!player.slow),
  '+': () => changeSpeed(1),
  '-': () => changeSpeed(-1),
  '?': () => { $('keys').open = !$('keys').open; },
};

addEventListener('keydown', (event) => {
  const control = event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement;
  if (event.ctrlKey || event.altKey || event.metaKey || control && event.key !== 's') return;
  if (event.key === ' ' && event.target instanceof HTMLButtonElement) return;
  const phase = '123456'.indexOf(event.key), change = phase >= 0 ? () => player.showPhase(phase) : KEYS[event.key];
  if (!change) return;
  event.preventDefault();
  act(change);
});

$('play').addEventListener('click', () => act(() => player.toggle()));
$('first').addEventListener('click', () => act(() => player.show(0)));
$('previous').addEventListener('click', () => act(() => player.step(-1)));
$('next').addEventListener('click', () => act(() => player.step(1)));
$('slow').addEventListener('click', () => act(() => player.setSlow(!player.slow)));
$('speed').addEventListener('change', (event) => act(() => { player.speed = Number(event.target.value); }));
$('scrub').addEventListener('input', (event) => act(() => player.show(Number(event.target.value))));
document.querySelectorAll('#phases button').forEach((button, i) => {
  button.addEventListener('click', () => act(() => player.showPhase(i)));
});
$('strip').addEventListener('pointerdown', (event) => {
  $('strip').setPointerCapture(event.pointerId);
  act(() => player.show(roundAt(event)));
});
$('strip').addEventListener('pointermove', (event) => {
  if (event.buttons) act(() => player.show(roundAt(event)));
});
$('reply').addEventListener('click', (event) => {
  if (event.target.dataset.round) act(() => player.show(Number(event.target.dataset.round)));
});
$('tree').addEventListener('pointermove', (event) => act(() => {
  hovered = player.slow ? -1 : nodeAt(event);
  showCard(event);
}));
$('tree').addEventListener('pointerleave', (event) => act(() => {
  hovered = -1;
  showCard(event);
}));
reduced.addEventListener('change', () => act(() => {
  player.reducedMotion = reduced.matches;
  if (reduced.matches && player.slow) player.playing = false;
}));
for (const query of ['(prefers-color-scheme: light)', '(prefers-contrast: more)'])
  matchMedia(query).addEventListener('change', () => act(readColours));
addEventListener('resize', wake);

readColours();
$('scrub').max = player.lastRound;
for (const [id, look] of [['mark-accepted', LOOK.accepted], ['mark-rejected', LOOK.rejected], ['mark-bonus', LOOK.bonus]]) {
  const canvas = $(id), fit = fitted(canvas, 16, 16), small = new Painter(canvas, colours, []);
  small.c.setTransform(fit, 0, 0, fit, 0, 0);
  small.mark(look, 8, 8, look === LOOK.bonus ? 5 : 6);
}
if ($('mark-found')) {
  const canvas = $('mark-found'), fit = fitted(canvas, 16, 16), small = new Painter(canvas, colours, []);
  small.c.setTransform(fit, 0, 0, fit, 0, 0);
  small.foundMark(8, 8, 6);
}
wake();
document.documentElement.dataset.ready = 'yes';
