"""What training needs of the target: its taps at all positions of a batch, and its likeliest next tokens at those that
are learnt. Computed anew for every batch, or kept in files: on a CPU the target costs several times the drafter."""

import torch

from feature_store import FeatureStore, row_key


class LiveFeatures:
    """Runs the target for every batch: the choice where it is fast or the text is seen once."""

    def __init__(self, target, taps, teacher_top):
        self.target, self.taps, self.top = target, taps, teacher_top

    def close(self):
        pass

    @torch.no_grad()
    def __call__(self, batch, labels):
        """(features [rows, T, taps * H], teacher or None): teacher = (tokens [n, k], log probabilities [n, k] among the
        k) of the position in front of each label."""
        hidden, features = self.target(batch.tokens, None, self.taps)
        if not self.top:
            return features, None
        # The head is the largest matrix: positions that several blocks share are computed once.
        flat, back = (labels.rows * hidden.shape[1] + labels.positions - 1).unique(return_inverse=True)
        values, tokens = self.target.logits(hidden.flatten(0, 1)[flat]).topk(self.top)
        return features, (tokens[back], values.log_softmax(-1)[back])


class StoredFeatures:
    """The same from a FeatureStore, which the first batch with a text adds to."""

    def __init__(self, target, taps, teacher_top, text, folder):
        self.target, self.text, self.top = target, text, teacher_top
        self.store = FeatureStore(folder, target, taps, teacher_top)

    def close(self):
        self.store.close()

    def __call__(self, batch, labels):
        keys = self.keys_of(batch)
        features = torch.zeros(*batch.tokens.shape, self.store.width, dtype=torch.bfloat16)
        tokens = torch.zeros(*batch.tokens.shape, self.top, dtype=torch.int32)
        log_probs = torch.zeros(*batch.tokens.shape, self.top, dtype=torch.float16)
        for row, (key, count) in enumerate(zip(keys, batch.lengths.tolist())):
            features[row, :count] = self.store.features(key)
            if self.top:
                tokens[row, :count], log_probs[row, :count] = self.store.teacher(key)
        device = batch.tokens.device
        features = features.to(device, self.target.head_weight.dtype)
        if not self.top:
            return features, None
        rows, places = labels.rows.cpu(), labels.positions.cpu() - 1
        return features, (tokens[rows, places].long().to(device), log_probs[rows, places].float().to(device))

    def certainty(self, batch):
        """[rows, T]: the target's probability of each token of an answer, among its likeliest; 0 elsewhere"""
        sure = torch.zeros(batch.tokens.shape)
        for row, (key, count) in enumerate(zip(self.keys_of(batch), batch.lengths.tolist())):
            sure[row, 1:count] = self.store.teacher(key)[1][:count - 1, 0].float().exp()
        return torch.where(batch.answer.cpu(), sure, 0.0)

    def keys_of(self, batch):
        """Of its rows, all of which are in the store then"""
        keys = []
        for index, count in zip(batch.indices, batch.lengths.tolist()):
            tokens, answer = self.text.row(index)
            keys.append(row_key(tokens[:count], answer[:count]))
        missing = [row for row, key in enumerate(keys) if key not in self.store]
        if missing:
            self.fill(batch, keys, missing)
        return keys

    @torch.no_grad()
    def fill(self, batch, keys, rows):
        """Runs the target over some rows of a batch and stores what comes of it."""
        hidden, features = self.target(batch.tokens[rows], None, self.store.taps)
        lengths = batch.lengths.tolist()
        for place, row in enumerate(rows):
            count, teacher = lengths[row], None
            if self.top:  # in front of every token of an answer
                teacher = torch.zeros(count, self.top, dtype=torch.int32), torch.zeros(count, self.top)
                places = batch.answer[row, 1:count].nonzero()[:, 0]
                values, tokens = self.target.logits(hidden[place, places]).topk(self.top)
                teacher[0][places.cpu()] = tokens.int().cpu()
                teacher[1][places.cpu()] = values.log_softmax(-1).cpu()
            self.store.append(keys[row], features[place, :count], teacher)
