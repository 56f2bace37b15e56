// Paints a round as it was laid out: positions, widths and shapes come with the page, only what moves is computed here.

const MONO = '"JetBrains Mono", ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const SANS = 'Inter, system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const RETURN_SIGN = '\u21b5';
const LOOK = {root: 0, undecided: 1, accepted: 2, rejected: 3, notReached: 4, bonus: 5};

/// "31%", "0.4%", "<0.1%" for ten-thousandths.
function percentage(share) {
  if (share >= 95) return Math.round(share / 100) + '%';
  if (share >= 10) return (share / 100).toFixed(1) + '%';
  return '<0.1%';
}

class Painter {
  constructor(canvas, colours, labels) {
    Object.assign(this, {canvas, colours, labels, c: canvas.getContext('2d')});
  }

  /// Paints a moment of a round. size: of the canvas that it was laid out for; fit: pixels of the screen for each of it.
  paint(round, rev, size, fit, hovered) {
    const c = this.c;
    Object.assign(this, {round, rev, size});
    c.setTransform(fit, 0, 0, fit, 0, 0);
    c.clearRect(0, 0, size.w, size.h);
    c.textBaseline = 'alphabetic';
    if (!rev.whole && rev.verified > 0) this.onePass();
    if (!rev.draftShown) {
      for (const look of [LOOK.notReached, LOOK.undecided, LOOK.rejected]) this.limbs(look);
      for (const tuft of round.tufts) this.tuft(tuft);
      this.glow();
      this.limbs(LOOK.accepted);
      this.limbs(LOOK.bonus);
    }
    for (const path of [false, true])
      for (const box of round.boxes) if (round.onPath[box[0]] === path && this.strength(box[0]) > 0) this.word(box);
    if (rev.draftShown) this.draft();
    if (!rev.whole) this.notes();
    this.depths();
    if (rev.whole && round.note) this.chainNote(round.note);
    if (rev.walker >= 0 && !rev.whole) this.ring(rev.walker);
    if (hovered >= 0) this.ring(hovered);
  }

  strength(node) {
    return this.rev.nodes[node].shown * this.rev.nodes[node].strength;
  }
  lookOf(node) {
    const fate = this.round.f[node];
    if (fate === FATE.root) return LOOK.root;
    if (fate === FATE.bonus) return LOOK.bonus;
    if (!this.rev.nodes[node].judged) return LOOK.undecided;
    return fate === FATE.accepted ? LOOK.accepted : fate === FATE.rejected ? LOOK.rejected : LOOK.notReached;
  }
  lookOfTuft(tuft) {
    if (!this.rev.nodes[tuft.heads[0]].judged) return LOOK.undecided;
    return tuft.rejected ? LOOK.rejected : LOOK.notReached;
  }
  shareOfTuft(tuft) {
    return tuft.heads.reduce((sum, head) => sum + this.rev.nodes[head].shown, 0) / tuft.heads.length;
  }
  figureHidden(box) {
    const now = this.rev.nodes[box[0]];
    return now.judged && now.lit >= 1 ? 0 : box[5];
  }

  fill(colour, alpha = 1) {
    this.c.fillStyle = this.colours[colour];
    this.c.globalAlpha = alpha;
  }
  stroke(colour, width, alpha = 1, dash = []) {
    this.c.strokeStyle = this.colours[colour];
    this.c.lineWidth = width;
    this.c.globalAlpha = alpha;
    this.c.setLineDash(dash);
  }

  // A limb: [parent, child, tuft or not, from, p.x, p.y, q.x, q.y, begin, end].
  headOf(limb) {
    return limb[2] ? this.round.tufts[limb[1]].heads[0] : limb[1];
  }
  looksOf(limb) {
    return limb[2] ? this.lookOfTuft(this.round.tufts[limb[1]]) : this.lookOf(limb[1]);
  }
  shownOf(limb) {
    return limb[2] ? this.shareOfTuft(this.round.tufts[limb[1]]) : this.rev.nodes[limb[1]].shown;
  }
  fromOf(limb) {
    const box = this.round.boxOf[limb[0]];
    return limb[3] - (box ? this.figureHidden(box) : 0);
  }

  limbs(wanted) {
    for (const limb of this.round.limbs) {
      const shown = this.shownOf(limb);
      if (this.looksOf(limb) !== wanted || shown <= 0) continue;
      if (wanted === LOOK.bonus) this.dotted(limb);
      else this.wood(limb, wanted, shown);
    }
  }

  wood(limb, wanted, shown) {
    const head = this.rev.nodes[this.headOf(limb)];
    const lit = limb[2] ? 0 : this.rev.nodes[limb[1]].lit;
    const grown = limb[2] ? Math.min(1, shown * 4) : easeOut(shown);
    const hollow = wanted === LOOK.rejected && Math.max(limb[8], limb[9]) >= 5;
    const names = ['limb', 'limb', 'accepted', hollow ? 'limb_rejected_bg' : 'limb_rejected', 'limb_unreached'];
    if (wanted === LOOK.accepted && lit < 1) this.ribbon(limb, head.width, grown, 'limb', head.strength);
    const reached = wanted === LOOK.accepted ? lit : grown;
    if (reached <= 0) return;
    this.ribbon(limb, head.width, reached, names[wanted], head.strength);
    if (hollow) {
      this.stroke('rejected', 1, 0.75 * head.strength);
      this.c.stroke();
    }
  }

  /// A cubic with level ends, begin pixels thick at p and end at q, after a level piece.
  ribbon(limb, width, reached, colour, alpha) {
    const [px, py, qx, qy] = limb.slice(4, 8), from = this.fromOf(limb), c = this.c, upper = [], lower = [];
    const stop = from + (qx - from) * reached, level = Math.abs(py - qy) < 0.5;
    const begin = limb[8] * width * 0.5, end = limb[9] * width * 0.5;
    if (from < px - 0.5) {
      upper.push([from, py - begin]);
      lower.push([from, py + begin]);
    }
    const pieces = level && Math.abs(begin - end) < 0.5 ? 1 : 20;
    for (let i = 0; i <= pieces; ++i) {
      const u = i / pieces, ease = u * u * (3 - 2 * u), x = px + (qx - px) * u * (1.5 - 1.5 * u + u * u);
      const dx = (qx - px) * (1.5 - 3 * u + 3 * u * u), dy = (qy - py) * 6 * u * (1 - u), speed = Math.hypot(dx, dy) || 1;
      const half = begin + (end - begin) * ease, y = py + (qy - py) * ease, nx = -dy / speed * half, ny = dx / speed * half;
      if (x > stop + 0.01 && i > 0) {
        upper.push([stop, y - ny]);
        lower.push([stop, y + ny]);
        break;
      }
      upper.push([x - nx, y - ny]);
      lower.push([x + nx, y + ny]);
    }
    c.beginPath();
    for (const [x, y] of upper) c.lineTo(x, y);
    for (const [x, y] of lower.reverse()) c.lineTo(x, y);
    c.closePath();
    this.fill(colour, alpha);
    c.fill();
  }

  middleOf(limb, from, end) {
    const [px, py, qx, qy] = limb.slice(4, 8), half = (px + qx) * 0.5;
    this.c.beginPath();
    this.c.moveTo(Math.min(from, px), py);
    this.c.lineTo(px, py);
    this.c.bezierCurveTo(half, py, half, qy, qx - end, qy);
  }

  glow() {
    for (const limb of this.round.limbs) {
      if (this.looksOf(limb) !== LOOK.accepted || limb[2] || this.rev.nodes[limb[1]].lit < 1) continue;
      const strength = this.rev.nodes[limb[1]].strength;
      for (let i = 5; i > 0; --i) {
        this.middleOf(limb, this.fromOf(limb), 0);
        this.stroke('accepted', Math.max(limb[8], limb[9]) + 3.6 * i, 0.06 * strength);
        this.c.stroke();
      }
    }
  }

  dotted(limb) {
    this.middleOf(limb, this.fromOf(limb) + 3, 8);
    this.stroke('bonus', 2.2, this.strength(limb[1]), [2, 3]);
    this.c.stroke();
  }

  tuft(tuft) {
    const share = this.shareOfTuft(tuft), look = this.lookOfTuft(tuft), c = this.c;
    if (share <= 0) return;
    const strength = this.rev.nodes[tuft.heads[0]].strength, there = Math.ceil(tuft.twigs.length * share);
    const wood = look === LOOK.rejected ? 'limb_rejected' : look === LOOK.undecided ? 'limb' : 'limb_unreached';
    for (let i = 0; i < there; ++i) {
      const [dx, dy, head] = tuft.twigs[i], x = tuft.x, y = tuft.y;
      c.beginPath();
      c.moveTo(x, y);
      c.bezierCurveTo(x + dx * 0.4, y, x + dx * 0.55, y + dy, x + dx, y + dy);
      this.stroke(wood, tuft.wood, strength);
      c.stroke();
      c.beginPath();
      c.arc(x + dx, y + dy, tuft.dot, 0, 7);
      this.fill(head && look === LOOK.rejected ? 'rejected' : look === LOOK.undecided ? 'twig' : 'unreached', strength);
      c.fill();
    }
    if (there === 0) return;
    if (tuft.found) this.corner(tuft.label[0] + tuft.label[1], tuft.y - 6, this.cornerSide(1), look, strength);
    if (tuft.nodes === 1) {
      this.label(tuft.label[0], tuft.y, this.labels[this.round.l[tuft.heads[0]]], 400, this.round.text, 'text3', strength,
                 tuft.label[1]);
      return;
    }
    const count = '+' + tuft.nodes;
    this.write(tuft.label[0], tuft.y, count, MONO, 400, 11, 'text2', strength);
    this.write(tuft.label[0] + count.length * 6.6, tuft.y, ' \u00b7 ' + percentage(tuft.mass), MONO, 400, 11, 'text3',
               strength);
  }

  write(x, y, text, family, weight, em, colour, alpha = 1, align = 'left', room = undefined) {
    this.c.font = weight + ' ' + em + 'px ' + family;
    this.c.textAlign = align;
    this.fill(colour, alpha);
    this.c.fillText(text, x, y + em * 0.36, room);
  }

  /// A word of the tree, cut to its room; a line break is drawn as a return sign.
  label(x, y, label, weight, em, colour, alpha, room) {
    const cell = em * 0.6, chars = Array.from(label), fits = Math.max(1, Math.floor(room / cell + 0.2));
    if (chars.length > fits) chars.splice(fits - 1, chars.length, '\u2026');
    let run = '';
    const flush = () => {
      if (!run) return;
      const wide = Math.min(room, run.length * cell * 2);
      this.write(x, y, run, MONO, weight, em, colour, alpha, 'left', wide);
      x += this.c.measureText(run).width;
      run = '';
    };
    for (const char of chars) {
      if (char !== RETURN_SIGN) {
        run += char;
        continue;
      }
      flush();
      this.returnSign(x, y, cell, em, colour, alpha);
      x += cell;
    }
    flush();
  }

  returnSign(x, y, width, em, colour, alpha) {
    const right = x + width * 0.8, left = x + width * 0.06, low = y + em * 0.13, head = width * 0.3, c = this.c;
    c.beginPath();
    c.moveTo(right, y - em * 0.26);
    c.lineTo(right, low);
    c.lineTo(left, low);
    c.moveTo(left + head, low - head);
    c.lineTo(left, low);
    c.lineTo(left + head, low + head);
    this.stroke(colour, Math.max(1, em * 0.1), alpha);
    c.stroke();
  }

  pill(x, y, width, height, fill, line, strokeWidth, alpha, dash, round = height * 0.28) {
    const c = this.c;
    c.beginPath();
    c.roundRect(x, y, width, height, round);
    this.fill(fill, alpha);
    c.fill();
    this.stroke(line, strokeWidth, alpha, dash);
    c.stroke();
  }

  // A box: [node, x, y, width, room of the label, room of the percentage].
  word(box) {
    const [node, x, y, , room] = box, look = this.lookOf(node), now = this.rev.nodes[node], round = this.round;
    const seen = look === LOOK.accepted && now.lit < 1 ? LOOK.undecided : look;
    const strength = this.strength(node), width = box[3] - this.figureHidden(box), half = round.pill / 2, c = this.c;
    const square = round.s[node] === SOURCE.text; // no round corners where the drafter did not propose it
    const bend = square ? 0 : round.pill * 0.28;
    this.frame(seen, x, y - half, width, round.pill, bend, strength);
    if (this.rev.verified > 0 && look !== LOOK.root) {
      c.beginPath();
      c.roundRect(x, y - half, width, round.pill, bend);
      this.stroke('accent', 1.5, this.rev.verified * strength);
      c.stroke();
    }
    const top = y - half + (seen === LOOK.notReached ? 2 : 0);
    if (isFound(round, node)) this.corner(x + width, top, this.cornerSide(round.grown), seen, strength);
    const strong = seen === LOOK.accepted || seen === LOOK.bonus || seen === LOOK.root;
    const left = seen === LOOK.root ? 10 : look === LOOK.bonus ? 14 : 12;
    const ofOthers = round.others?.includes(node); // words of another chat, which are not told
    const colour = ofOthers ? 'text3' : ['text', 'text2', 'text', 'rejected_text', 'text3', 'bonus_text'][seen];
    this.label(x + left * round.grown, y, this.labels[round.l[node]], strong ? 600 : 400, round.text, colour, strength, room);
    if (round.figures && (seen === LOOK.accepted || seen === LOOK.rejected))
      this.write(x + width - 8 * round.grown, y, percentage(round.q[node]), MONO, 400, 10 * round.grown,
                 seen === LOOK.accepted ? 'accepted_text' : 'rejected_text', strength, 'right');
    this.badge(seen, x, y, square, strength);
  }

  cornerSide(scale) {
    return Math.min(6 * scale, this.round.pill * 0.36);
  }

  /// The filled corner of a word that was found in the text.
  corner(x, y, side, look, alpha) {
    const colour = look === LOOK.accepted ? 'accepted' : look === LOOK.rejected ? 'rejected' :
      look === LOOK.notReached ? 'unreached' : 'text3';
    this.fillCorner(x, y, side, colour, alpha);
  }
  fillCorner(x, y, side, colour, alpha = 1) {
    const c = this.c;
    c.beginPath();
    c.moveTo(x - side, y);
    c.lineTo(x, y);
    c.lineTo(x, y + side);
    c.closePath();
    this.fill(colour, alpha);
    c.fill();
  }

  frame(look, x, y, width, height, bend, alpha) {
    const c = this.c;
    if (look === LOOK.accepted) {
      for (const reach of [6, 3]) {
        c.beginPath();
        c.roundRect(x - reach, y - reach, width + 2 * reach, height + 2 * reach, bend + reach);
        this.fill('accepted', 0.07 * alpha);
        c.fill();
      }
    }
    if (look === LOOK.root) this.pill(x, y, width, height, 'raised', 'text2', 1.5, alpha, [], bend);
    if (look === LOOK.undecided) this.pill(x, y, width, height, 'card', 'ctl', 1, alpha, [], bend);
    if (look === LOOK.accepted) this.pill(x, y, width, height, 'accepted_bg', 'accepted', 1.5, alpha, [], bend);
    if (look === LOOK.rejected) this.pill(x, y, width, height, 'canvas', 'rejected', 1.2, alpha, [4, 3], bend);
    if (look === LOOK.bonus) this.pill(x, y, width, height, 'bonus_bg', 'bonus', 1.5, alpha, [2, 2.4], bend);
    if (look !== LOOK.notReached) return;
    this.fill('canvas', alpha);
    c.fillRect(x + 4, y + 2, width - 4, height - 4);
  }

  disc(x, y, reach, colour, alpha) {
    this.c.beginPath();
    this.c.arc(x, y, reach, 0, 7);
    this.fill(colour, alpha);
    this.c.fill();
  }

  badge(look, x, y, square, alpha) {
    const reach = Math.min(6.5 * this.round.grown, this.round.pill * 0.42);
    if (look === LOOK.notReached && !square) this.disc(x + 3, y, 2.4, 'unreached', alpha);
    if (look === LOOK.notReached && square) {
      this.fill('unreached', alpha);
      this.c.fillRect(x + 1, y - 2, 4, 4);
    }
    if (look === LOOK.accepted || look === LOOK.rejected || look === LOOK.bonus) this.mark(look, x, y, reach, alpha);
  }

  /// The sign of words that were found in the text: a pill with square corners, one of them filled.
  foundMark(x, y, reach) {
    this.stroke('text2', 1.2);
    this.c.strokeRect(x - reach, y - reach * 0.75, reach * 2, reach * 1.5);
    this.fillCorner(x + reach, y - reach * 0.75, reach, 'text2');
  }

  /// The check mark, cross or star of a state.
  mark(look, x, y, r, alpha = 1) {
    const c = this.c;
    if (look === LOOK.accepted) {
      this.disc(x, y, r + 1, 'canvas', alpha);
      this.disc(x, y, r, 'accepted', alpha);
      c.beginPath();
      c.moveTo(x - r * 0.5, y + r * 0.02);
      c.lineTo(x - r * 0.12, y + r * 0.4);
      c.lineTo(x + r * 0.52, y - r * 0.38);
      this.stroke('on_state', r * 0.28, alpha);
      c.stroke();
    } else if (look === LOOK.rejected) {
      const a = r * 0.58;
      this.disc(x, y, r, 'canvas', alpha);
      c.beginPath();
      c.moveTo(x - a, y - a);
      c.lineTo(x + a, y + a);
      c.moveTo(x + a, y - a);
      c.lineTo(x - a, y + a);
      this.stroke('rejected', r * 0.36, alpha);
      c.stroke();
    } else {
      this.disc(x, y, r * 1.1, 'canvas', alpha);
      c.beginPath();
      for (let i = 0; i < 10; ++i) {
        const angle = Math.PI / 5 * (i - 2.5), reach = r * 1.35 * (i % 2 === 0 ? 1 : 0.45);
        c.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
      }
      c.closePath();
      this.fill('bonus', alpha);
      c.fill();
    }
  }

  ring(node) {
    const box = this.round.boxOf[node], c = this.c;
    if (!box || this.strength(node) <= 0) return;
    const half = this.round.pill / 2 + 3, badge = this.round.f[node] === FATE.root ? 0 : 6.5 * this.round.grown;
    c.beginPath();
    c.roundRect(box[1] - badge - 3, box[2] - half, box[3] - this.figureHidden(box) + badge + 6, half * 2, 6);
    this.stroke('text', 1.5);
    c.stroke();
  }

  depths() {
    this.fill('canvas', 0.9);
    this.c.fillRect(0, 0, this.size.w, 20);
    for (const [x, words] of this.round.depths) this.write(x, 12, words, SANS, 400, 11, 'text3');
  }

  /// The draft: the drafter's likeliest tokens at every place, all filled at the same time. Not where none was asked.
  draft() {
    const shown = easeOut(this.rev.filled), round = this.round, c = this.c;
    for (const {x, width, nodes} of round.draft) {
      nodes.forEach((node, rank) => {
        const q = round.q[node] / 10000, strength = shown * (0.45 + 0.55 * Math.sqrt(q));
        const y = clamp(round.boxOf[0][2] + (rank - (nodes.length - 1) / 2) * 32, 26, this.size.h - 26) - 13;
        c.beginPath();
        c.roundRect(x, y, width, 26, 6);
        this.fill('card', strength);
        c.fill();
        this.stroke('ctl', 1, strength);
        c.stroke();
        this.label(x + 8, y + 11, this.labels[round.l[node]], 400, 12, 'text', strength, width - 14);
        this.fill('line', strength);
        c.fillRect(x + 8, y + 20.5, width - 16, 2.5);
        this.fill('draft', strength);
        c.fillRect(x + 8, y + 20.5, Math.max(2, (width - 16) * q) * shown, 2.5);
      });
    }
  }

  onePass() {
    const strength = Math.min(1, 3 * Math.min(this.rev.verified, 1.15 - this.rev.verified)), c = this.c;
    if (strength <= 0) return;
    const wash = c.createLinearGradient(0, 0, this.size.w, 0);
    wash.addColorStop(0, 'transparent');
    wash.addColorStop(0.5, this.colours.accent);
    wash.addColorStop(1, 'transparent');
    c.fillStyle = wash;
    c.globalAlpha = 0.16 * strength;
    c.fillRect(0, 0, this.size.w, this.size.h);
  }

  notes() {
    const round = this.round, rev = this.rev, c = this.c;
    if (rev.verified > 0 && round.passNote) {
      const [x, y, width, words] = round.passNote;
      c.beginPath();
      c.roundRect(x, y, width, 24, 12);
      this.fill('accent_bg');
      c.fill();
      this.write(x + width / 2, y + 12, words, SANS, 500, 13, 'accent_text', 1, 'center');
    }
    if (this.numbered)
      for (const [node, x, y] of round.order)
        if (rev.nodes[node].shown > 0) this.write(x, y, String(node), MONO, 400, 11, 'text3', rev.nodes[node].shown);
  }

  chainNote([x, y, ...lines]) {
    lines.forEach((line, i) => this.write(x, y + 7 + 16 * i, line, SANS, 400, 11, i === 0 ? 'text2' : 'text3'));
  }

  /// The confirmed words on their way out of the tree, to the left edge at height `y`, towards the text.
  flying(progress, target) {
    const round = this.round, words = round.path.length - 1;
    for (let i = 0; i < words; ++i) {
      const apart = words > 1 ? Math.min(60 / 700, 0.4 / (words - 1)) : 0;
      const t = clamp((progress - apart * i) / (ARRIVED - apart * (words - 1)), 0, 1);
      const node = round.path[i + 1], box = round.boxOf[node], bonus = node === round.bonus;
      if (t <= 0 || t >= 1) continue;
      const label = this.labels[round.l[node]], width = Array.from(label).length * 7.2 + 16;
      const x = box[1] + box[3] / 2 + (target.x - box[1] - box[3] / 2) * easeInOut(t), y = box[2] + (target.y - box[2]) * t;
      this.pill(x - width / 2, y - 11, width, 22, bonus ? 'bonus_bg' : 'accepted_bg', bonus ? 'bonus' : 'accepted', 1.5, 1, []);
      this.label(x - width / 2 + 8, y, label, 600, 12, bonus ? 'bonus_text' : 'text', 1, width);
    }
  }
}
