'use strict';
// What is shown of a round at a moment, and time: the rules of the window's replay (app/tree/tree_look.cpp,
// app/state/rounds.cpp). No drawing, no document.

const FATE = {root: 0, accepted: 1, rejected: 2, notReached: 3, bonus: 4};
const PHASE = {fill: 0, insert: 1, verify: 2, walk: 3, bonus: 4, commit: 5};
const ARRIVED = 0.85; // share of the phase commit after which all tokens are in the text

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const easeOut = (t) => 1 - Math.pow(1 - clamp(t, 0, 1), 3);
const easeInOut = (t) => {
  const c = clamp(t, 0, 1);
  return c < 0.5 ? 4 * c * c * c : 1 - Math.pow(2 - 2 * c, 3) / 2;
};

const SOURCE = {drafter: 1, text: 2}; // bits; a round without a word from the text does not have them
const isFound = (round, i) => (round.s[i] & SOURCE.text) !== 0;
const isDrafted = (round, i) => round.f[i] !== FATE.root && round.f[i] !== FATE.bonus;

/// Per node: shown (opacity), judged, strength, lit (share of the limb to it), width (of its limb).
function reveal(round, phase, progress) {
  const count = round.f.length, p = clamp(progress, 0, 1);
  const nodes = Array.from({length: count}, () => ({shown: 1, judged: true, strength: 1, lit: 1, width: 1}));
  const out = {nodes, filled: 1, draftShown: false, verified: 0, walker: -1, whole: phase === PHASE.commit && p >= 1};
  if (out.whole) return out;
  const last = round.path.length - (round.bonus >= 0 ? 2 : 1);
  for (let i = 1; i < count; ++i) {
    if (phase < PHASE.bonus && round.f[i] === FATE.bonus) nodes[i].shown = 0;
    if (phase < PHASE.walk) nodes[i].judged = false;
  }
  if (phase === PHASE.fill) {
    out.draftShown = true;
    out.filled = p;
    for (let i = 1; i < count; ++i) nodes[i].shown = 0;
  } else if (phase === PHASE.insert) {
    const inserted = p * (count - (round.bonus >= 0 ? 2 : 1));
    for (let i = 1; i < count; ++i) if (isDrafted(round, i)) nodes[i].shown = clamp(inserted - (i - 1), 0, 1);
  } else if (phase === PHASE.verify) {
    out.verified = p;
  } else if (phase === PHASE.walk) {
    walk(round, p * (last + 1), nodes);
    out.walker = round.path[Math.min(Math.floor(p * (last + 1) + 1e-4), last)];
  } else if (phase === PHASE.bonus) {
    walk(round, last + 1, nodes);
    if (round.bonus >= 0) nodes[round.bonus].shown = p;
  } else {
    drop(round, p, nodes);
  }
  return out;
}

const WITHERED = 0.55, DROPPED = 0.3;

function walk(round, walked, nodes) {
  for (let i = 1; i < nodes.length; ++i) {
    if (!isDrafted(round, i)) continue;
    const parent = round.p[i], now = nodes[i];
    if (!round.onPath[parent]) {
      now.judged = nodes[parent].judged;
      now.width = nodes[parent].width;
      continue;
    }
    const step = walked - (round.depth[i] - 1);
    now.judged = step > 0;
    if (round.onPath[i]) now.lit = clamp(step, 0, 1);
    else now.width = 1 - (1 - WITHERED) * easeOut(step);
  }
}

function drop(round, p, nodes) {
  const dip = Math.min(1, 2 * (1 - Math.abs(2 * p - 1))), back = Math.max(0, 2 * p - 1);
  for (let i = 1; i < nodes.length; ++i) {
    if (round.onPath[i]) continue;
    nodes[i].strength = 1 - (1 - DROPPED) * dip;
    nodes[i].width = WITHERED + (1 - WITHERED) * back;
  }
}

/// Fills in what follows from the arrays of a round: depths, and which nodes are on the path.
function prepare(round) {
  round.f = Array.from(round.f, Number);
  round.s = Array.from(round.s ?? '', Number);
  round.depth = [0];
  for (let i = 1; i < round.f.length; ++i) round.depth.push(round.depth[round.p[i]] + 1);
  round.onPath = new Array(round.f.length).fill(false);
  for (const node of round.path) round.onPath[node] = true;
}

/// The replay. `rounds` have ms (how long each took), plain (nothing was drafted) and fromText (no drafter was asked).
class Player {
  constructor(rounds, phases, reducedMotion) {
    Object.assign(this, {rounds, phases, reducedMotion, shown: 0, playing: false, speed: 1, slow: false});
    this.showWhole();
  }
  get told() {
    return !this.slow || (this.phase === PHASE.commit && this.progress >= ARRIVED);
  }
  get lastRound() {
    return this.rounds.length - 1;
  }
  firstPhase(round) {
    return this.rounds[round].plain ? PHASE.verify : this.rounds[round].fromText ? PHASE.insert : PHASE.fill;
  }
  phaseMs(phase) {
    if (phase !== PHASE.walk) return this.phases[phase].ms;
    return Math.min(this.phases[phase].ms, 250 * (this.rounds[this.shown].accepted + 1));
  }
  showWhole() {
    this.phase = PHASE.commit;
    this.progress = 1;
    this.elapsed = 0;
  }
  beginPhase(phase) {
    this.phase = phase;
    this.progress = 0;
    this.elapsed = 0;
  }
  endPhase(phase) {
    this.phase = phase;
    this.progress = 1;
    this.elapsed = this.phaseMs(phase);
  }
  show(round) {
    this.playing = false;
    this.showWhole();
    this.shown = clamp(round, 0, this.lastRound);
  }
  step(by) {
    this.playing = false;
    if (!this.slow) return this.show(this.shown + by);
    this.stepPhase(by > 0);
  }
  stepPhase(forward) {
    if (forward) {
      if (this.progress < 1) this.endPhase(this.phase);
      else if (this.phase !== PHASE.commit) this.endPhase(this.phase + 1);
      else if (this.shown < this.lastRound) this.endPhase(this.firstPhase(++this.shown));
    } else if (this.phase !== this.firstPhase(this.shown)) {
      this.endPhase(this.phase - 1);
    } else if (this.shown > 0) {
      --this.shown;
      this.endPhase(PHASE.commit);
    }
  }
  toggle() {
    if (this.playing) {
      this.playing = false;
      return;
    }
    const whole = this.phase === PHASE.commit && this.progress >= 1;
    const atEnd = this.shown >= this.lastRound && whole;
    if (this.slow && this.reducedMotion) return this.stepPhase(true);
    this.playing = true;
    if (atEnd) this.shown = 0;
    if (!this.slow) this.showWhole();
    else if (whole) this.beginPhase(this.firstPhase(this.shown));
  }
  setSlow(on) {
    if (this.slow === on) return;
    this.slow = on;
    this.showWhole();
    if (!on) return;
    this.playing = !this.reducedMotion;
    const first = this.firstPhase(this.shown);
    if (this.reducedMotion) this.endPhase(first);
    else this.beginPhase(first);
  }
  showPhase(phase) {
    this.playing = false;
    this.slow = true;
    this.endPhase(Math.max(phase, this.firstPhase(this.shown)));
  }
  advance(ms) {
    if (!this.playing || !(ms > 0)) return;
    this.elapsed += ms * this.speed;
    if (this.slow) this.advancePhases();
    else this.advanceRounds();
  }
  advanceRounds() {
    while (this.shown < this.lastRound) {
      const stay = Math.max(1, this.rounds[this.shown + 1].ms);
      if (this.elapsed < stay) return;
      this.elapsed -= stay;
      ++this.shown;
    }
    this.playing = false;
    this.elapsed = 0;
  }
  advancePhases() {
    for (let whole; this.elapsed >= (whole = this.phaseMs(this.phase));) {
      const rest = this.elapsed - whole;
      if (this.phase !== PHASE.commit) {
        this.beginPhase(this.phase + 1);
      } else if (this.shown < this.lastRound) {
        this.beginPhase(this.firstPhase(++this.shown));
      } else {
        this.progress = 1;
        this.playing = false;
        return;
      }
      this.elapsed = rest;
    }
    this.progress = this.elapsed / this.phaseMs(this.phase);
  }
}
