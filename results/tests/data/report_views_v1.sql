-- What reports read beside `accuracy`, `speed` and `matrix`; part of version 1. Shares and ratios over nothing are NULL.

-- Passes of finished outputs by their counts. Kept by triggers, since grouping millions of rows takes SQLite minutes;
-- `pass` remains the record, and a test compares the two.
CREATE TABLE pass_tally (
  cell_id INTEGER NOT NULL REFERENCES cell(id),
  drafted INTEGER NOT NULL,
  accepted INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  committed INTEGER NOT NULL,
  strict_length INTEGER NOT NULL,
  blocked_by INTEGER NOT NULL,
  passes INTEGER NOT NULL,
  PRIMARY KEY (cell_id, drafted, accepted, kept, committed, strict_length, blocked_by)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pass_counted AFTER INSERT ON pass BEGIN
  INSERT INTO pass_tally
  SELECT cell_id, new.drafted, new.accepted, new.kept, new.committed, new.strict_length, new.blocked_by, 1
  FROM output WHERE output.id = new.output_id AND output.status = 'done'
  ON CONFLICT DO UPDATE SET passes = passes + 1;
END;

CREATE TRIGGER pass_uncounted BEFORE DELETE ON output WHEN old.status = 'done' BEGIN
  UPDATE pass_tally SET passes = passes - (
    SELECT count(*) FROM pass WHERE pass.output_id = old.id AND pass.drafted = pass_tally.drafted
      AND pass.accepted = pass_tally.accepted AND pass.kept = pass_tally.kept
      AND pass.committed = pass_tally.committed AND pass.strict_length = pass_tally.strict_length
      AND pass.blocked_by = pass_tally.blocked_by)
  WHERE cell_id = old.cell_id;
END;

-- Passes in which the budget or the headroom stopped an exception.
CREATE INDEX pass_exhausted ON pass (output_id) WHERE blocked_by & 12 <> 0;

-- What a cell is compared with. `strict`: the strict cell with the same drafter; `plain`: the one without a drafter;
-- both of the same task, target and decoding, as in `speed_ratio`.
CREATE VIEW cell_reference AS
SELECT cell.id AS cell_id, kind.reference, min(base.id) AS reference_id
FROM cell
JOIN (SELECT 'strict' AS reference UNION ALL SELECT 'plain') AS kind
JOIN cell AS base ON base.verifier = 'strict' AND base.id <> cell.id
WHERE cell.drafter <> 'none'
  AND CASE kind.reference
        WHEN 'plain' THEN base.drafter = 'none'
        ELSE cell.verifier <> 'strict' AND base.drafter = cell.drafter
             AND base.drafter_options = cell.drafter_options AND base.drafts = cell.drafts
      END
  AND base.task = cell.task AND base.split = cell.split AND base.task_version = cell.task_version
  AND base.data_sha256 = cell.data_sha256 AND base.task_options = cell.task_options
  AND base.target = cell.target AND base.target_sha256 = cell.target_sha256
  AND base.target_options = cell.target_options
  AND base.max_tokens = cell.max_tokens AND base.batch = cell.batch
  AND base.weight_dtype = cell.weight_dtype AND base.compute_dtype = cell.compute_dtype
  AND base.logit_dtype = cell.logit_dtype AND base.device = cell.device AND base.engine = cell.engine
  AND base.activations = cell.activations
GROUP BY cell.id, kind.reference;

-- Finished outputs of two compared cells for the same turn of the same sample.
CREATE VIEW pair AS
SELECT link.cell_id, link.reference, link.reference_id, output.sample_id, output.repeat, output.turn,
       output.id AS output_id, base.id AS reference_output_id,
       output.tokens_sha256 <> base.tokens_sha256 AS differs,
       output.output_tokens, base.output_tokens AS reference_tokens,
       output.finish_reason IN ('length', 'context_limit') AS capped,
       base.finish_reason IN ('length', 'context_limit') AS reference_capped
FROM cell_reference AS link
JOIN output ON output.cell_id = link.cell_id AND output.status = 'done'
JOIN output AS base ON base.cell_id = link.reference_id AND base.status = 'done'
  AND base.sample_id = output.sample_id AND base.repeat = output.repeat AND base.turn = output.turn;

-- Verdicts of each cell's own grader, latest version, as in `matrix`.
CREATE VIEW verdict AS
WITH latest AS (
  SELECT cell.id AS cell_id, cell.grader, max(score.scorer_version) AS scorer_version
  FROM cell JOIN output ON output.cell_id = cell.id
  JOIN score ON score.output_id = output.id AND score.scorer = cell.grader
  GROUP BY cell.id
)
SELECT output.id AS output_id, output.cell_id, score.verdict, score.value, score.answer, score.outcome
FROM latest JOIN output ON output.cell_id = latest.cell_id
JOIN score ON score.output_id = output.id AND score.scorer = latest.grader
  AND score.scorer_version = latest.scorer_version;

-- Compared cells, paired by sample. `b`: only this cell is right, `c`: only the reference (measurement.md, 4), first
-- with capped replies as incorrect, then as scored; pairs with an unscored reply are left out of n.
CREATE VIEW paired AS
WITH judged AS (
  SELECT pair.*, own.verdict <> 'unscored' AND other.verdict <> 'unscored' AS scored,
         own.verdict = 'correct' AS correct, other.verdict = 'correct' AS reference_correct
  FROM pair
  LEFT JOIN verdict AS own ON own.output_id = pair.output_id
  LEFT JOIN verdict AS other ON other.output_id = pair.reference_output_id
)
SELECT cell_id, reference, reference_id, count(*) AS pairs, sum(differs) AS diverged,
       sum(output_tokens) AS output_tokens, sum(reference_tokens) AS reference_tokens,
       coalesce(sum(capped AND NOT reference_capped), 0) AS only_capped,
       coalesce(sum(reference_capped AND NOT capped), 0) AS only_reference_capped,
       coalesce(sum(scored), 0) AS n,
       coalesce(sum(scored AND correct AND NOT capped AND NOT (reference_correct AND NOT reference_capped)), 0) AS b,
       coalesce(sum(scored AND reference_correct AND NOT reference_capped AND NOT (correct AND NOT capped)), 0) AS c,
       coalesce(sum(scored AND correct AND NOT reference_correct), 0) AS b_as_scored,
       coalesce(sum(scored AND reference_correct AND NOT correct), 0) AS c_as_scored,
       coalesce(sum(scored AND differs), 0) AS n_diverged,
       coalesce(sum(scored AND differs AND correct AND NOT capped), 0) AS correct_diverged,
       coalesce(sum(scored AND differs AND reference_correct AND NOT reference_capped), 0) AS reference_correct_diverged
FROM judged GROUP BY cell_id, reference, reference_id;

-- Where diverged outputs first differ: the position from 0 of the first different token, or the shorter length when one
-- output begins the other. Found by halving: of a window of `width` tokens of both, the half that holds the first
-- difference. Against plain only for cells that have no strict reference: those of lossy rules would say the same twice.
CREATE VIEW first_difference AS
WITH RECURSIVE search (cell_id, reference, sample_id, repeat, turn, output_id, reference_output_id, prefix, width, mine, other) AS (
  SELECT pair.cell_id, reference, pair.sample_id, pair.repeat, pair.turn, output_id, reference_output_id, 0,
         2 << cast(log2(max(pair.output_tokens, reference_tokens, 1)) AS INTEGER), output.tokens, base.tokens
  FROM pair JOIN output ON output.id = output_id JOIN output AS base ON base.id = reference_output_id
  WHERE differs AND (reference = 'strict' OR pair.cell_id NOT IN (
    SELECT cell_id FROM cell_reference WHERE reference = 'strict'))
  UNION ALL
  SELECT cell_id, reference, sample_id, repeat, turn, output_id, reference_output_id,
         CASE WHEN substr(mine, 1, 2 * width) = substr(other, 1, 2 * width) THEN prefix + width / 2 ELSE prefix END,
         width / 2,
         CASE WHEN substr(mine, 1, 2 * width) = substr(other, 1, 2 * width)
              THEN substr(mine, 2 * width + 1) ELSE substr(mine, 1, 2 * width) END,
         CASE WHEN substr(mine, 1, 2 * width) = substr(other, 1, 2 * width)
              THEN substr(other, 2 * width + 1) ELSE substr(other, 1, 2 * width) END
  FROM search WHERE width > 1
)
SELECT cell_id, reference, sample_id, repeat, turn, output_id, reference_output_id, prefix AS position
FROM search WHERE width = 1;

-- Tokens per pass of finished outputs, the token from prefill excluded, in every convention that published tables use:
-- with the target's own token (accept length) or drafts only, pooled over passes or as the mean of requests.
CREATE VIEW acceptance AS
WITH request AS (
  SELECT cell_id, count(*) AS requests, sum(passes) AS passes, sum(output_tokens - 1) AS tokens,
         avg(1.0 * (output_tokens - 1) / nullif(passes, 0)) AS accept_length_per_request
  FROM output WHERE status = 'done' GROUP BY cell_id
), pooled AS (
  SELECT cell_id, sum(passes * drafted) AS drafted, sum(passes * kept) AS kept,
         sum(passes * strict_length) AS strict_length
  FROM pass_tally GROUP BY cell_id
)
SELECT request.cell_id, requests, request.passes, tokens, drafted, kept,
       1.0 * tokens / nullif(request.passes, 0) AS accept_length, accept_length_per_request,
       1.0 * kept / nullif(request.passes, 0) AS drafts_kept_per_pass,
       1.0 * strict_length / nullif(request.passes, 0) AS strict_length_per_pass,
       1.0 * kept / nullif(drafted, 0) AS draft_acceptance
FROM request LEFT JOIN pooled ON pooled.cell_id = request.cell_id;

CREATE VIEW accept_histogram AS
SELECT cell_id, committed, sum(passes) AS passes FROM pass_tally WHERE passes > 0 GROUP BY cell_id, committed;

-- By position in the block, from 0: passes that drafted it, that reached it with every earlier draft accepted, and
-- that accepted it. Survival is accepted / drafted, conditional acceptance accepted / reached.
CREATE VIEW block_position AS
WITH RECURSIVE place (position) AS (
  SELECT 0 UNION ALL SELECT position + 1 FROM place WHERE position + 1 < (SELECT max(drafted) FROM pass_tally)
)
SELECT cell_id, position, sum(passes) AS drafted, sum(passes * (accepted >= position)) AS reached,
       sum(passes * (accepted > position)) AS accepted, sum(passes * (strict_length > position)) AS strict
FROM pass_tally JOIN place ON position < drafted
WHERE passes > 0 GROUP BY cell_id, position;

-- Conditions that stopped a block; one pass may name several.
CREATE VIEW blocked AS
WITH condition (flag, name) AS (
  VALUES (1, 'gate'), (2, 'cap'), (4, 'budget'), (8, 'headroom'), (16, 'eos_guard'), (32, 'strict'), (64, 'strict_head')
)
SELECT cell_id, name AS condition, sum(passes) AS passes
FROM pass_tally JOIN condition ON blocked_by & flag <> 0
WHERE passes > 0 GROUP BY cell_id, flag;

-- Exceptions of finished outputs by place in the block and by regret in steps of 1/16 nat, the finest that 16-bit logits
-- of common size have. `reused`: drafts kept behind them, each up to the next; one without any is barren.
CREATE VIEW exception_tally AS
WITH kept AS (
  SELECT output.cell_id, exception.block_position, exception.regret,
         coalesce((SELECT next.block_position FROM exception AS next
                   WHERE next.output_id = exception.output_id AND next.number = exception.number + 1
                     AND next.pass = exception.pass), pass.kept) - exception.block_position - 1 AS run
  FROM exception JOIN output ON output.id = exception.output_id AND output.status = 'done'
  JOIN pass ON pass.output_id = exception.output_id AND pass.number = exception.pass
)
SELECT cell_id, block_position AS position, cast(16 * regret AS INTEGER) / 16.0 AS regret_from,
       count(*) AS exceptions, sum(regret) AS regret, sum(run) AS reused, sum(run = 0) AS barren,
       sum(regret = 0) AS free
FROM kept GROUP BY 1, 2, 3;

-- Regret and exceptions per cell (measurement.md, 6). `exhausted`: requests in which budget or headroom ever stopped
-- a block.
CREATE VIEW ledger AS
WITH request AS (
  SELECT cell_id, count(*) AS requests, sum(exceptions > 0) AS requests_with_exception,
         sum(output_tokens - 1) AS tokens, sum(regret) AS regret, max(regret) AS largest_regret
  FROM output WHERE status = 'done' GROUP BY cell_id
), bought AS (
  SELECT cell_id, sum(exceptions) AS exceptions, sum(reused) AS reused, sum(barren) AS barren, sum(free) AS free
  FROM exception_tally GROUP BY cell_id
), spent_out AS (
  SELECT cell_id, count(*) AS exhausted FROM output
  WHERE status = 'done' AND cell_id IN (SELECT cell_id FROM pass_tally WHERE blocked_by & 12 <> 0 AND passes > 0)
    AND EXISTS (SELECT 1 FROM pass WHERE pass.output_id = output.id AND pass.blocked_by & 12 <> 0)
  GROUP BY cell_id
)
SELECT cell.id AS cell_id, cell.regret_budget AS budget, requests, requests_with_exception, tokens,
       coalesce(exceptions, 0) AS exceptions, coalesce(reused, 0) AS reused, coalesce(barren, 0) AS barren,
       coalesce(free, 0) AS free, coalesce(exhausted, 0) AS exhausted, regret, largest_regret,
       1.0 * exceptions / requests AS exceptions_per_request,
       100.0 * exceptions / nullif(tokens, 0) AS exceptions_per_100_tokens,
       regret / exceptions AS regret_per_exception, regret / requests AS regret_per_request,
       1.0 * reused / exceptions AS reused_per_exception,
       CASE WHEN regret_budget > 0 THEN regret / requests / regret_budget END AS budget_used_mean,
       CASE WHEN regret_budget > 0 THEN largest_regret / regret_budget END AS budget_used_max
FROM cell JOIN request ON request.cell_id = cell.id
LEFT JOIN bought ON bought.cell_id = cell.id
LEFT JOIN spent_out ON spent_out.cell_id = cell.id
WHERE cell.verifier <> 'strict';

CREATE VIEW regret_histogram AS
SELECT cell_id, regret_from, sum(exceptions) AS exceptions FROM exception_tally GROUP BY cell_id, regret_from;

CREATE VIEW exception_position AS
SELECT cell_id, position, sum(exceptions) AS exceptions, sum(regret) / sum(exceptions) AS regret_per_exception
FROM exception_tally GROUP BY cell_id, position;

-- Lengths and ends of finished replies.
CREATE VIEW length AS
SELECT cell_id, count(*) AS n, avg(output_tokens) AS mean_tokens, min(output_tokens) AS least, max(output_tokens) AS most,
       sum(finish_reason = 'eos') AS ended, sum(finish_reason = 'stop_string') AS stop_string,
       sum(finish_reason = 'length') AS length, sum(finish_reason = 'context_limit') AS context_limit
FROM output WHERE status = 'done' GROUP BY cell_id;

-- Per group of fixed work: each arm against its references in that group (a triple has one), and the drift
-- 100 (t_first / t_last - 1) of an arm between its two slots. Groups with unequal counted tokens have no ratio.
CREATE VIEW group_speed AS
WITH arm AS (
  SELECT speed_group.set_key, speed_group.number, speed_slot.group_id, speed_slot.cell_id,
         avg(ln(decode_ns)) AS log_ns, min(tokens) AS least, max(tokens) AS most, min(slot) AS first, max(slot) AS last,
         sum(decode_ns) AS decode_ns, sum(tokens) AS tokens
  FROM speed_group JOIN speed_slot ON speed_slot.group_id = speed_group.id
  WHERE speed_group.id NOT IN (SELECT group_id FROM speed_void)
  GROUP BY speed_slot.group_id, speed_slot.cell_id
)
SELECT arm.set_key, arm.number, arm.group_id, arm.cell_id, ratio.reference, ratio.reference_id,
       1e9 * arm.tokens / arm.decode_ns AS tokens_per_s,
       CASE WHEN arm.least = base.least AND arm.most = base.most AND arm.least = arm.most
            THEN exp(base.log_ns - arm.log_ns) END AS ratio,
       100.0 * ((SELECT decode_ns FROM speed_slot WHERE group_id = arm.group_id AND slot = arm.first)
         / (1.0 * (SELECT decode_ns FROM speed_slot WHERE group_id = arm.group_id AND slot = arm.last)) - 1) AS drift_pct
FROM arm
LEFT JOIN speed_ratio AS ratio ON ratio.set_key = arm.set_key AND ratio.cell_id = arm.cell_id
  AND EXISTS (SELECT 1 FROM speed_slot WHERE group_id = arm.group_id AND cell_id = ratio.reference_id)
LEFT JOIN arm AS base ON base.group_id = arm.group_id AND base.cell_id = ratio.reference_id;

-- The bound on a gain (measurement.md, 3): equal work and equal cost of a pass allow at most tau / tau of the reference.
-- A ratio whose interval lies above it means unequal work or a fault of the clock.
CREATE VIEW speed_bound AS
SELECT ratio.set_key, ratio.cell_id, ratio.reference, ratio.reference_id, ratio.groups,
       ratio.estimate, ratio.low, ratio.high,
       own.tokens_per_pass, base.tokens_per_pass AS reference_tokens_per_pass,
       own.tokens_per_pass / base.tokens_per_pass AS bound,
       coalesce(ratio.low, ratio.estimate) > own.tokens_per_pass / base.tokens_per_pass AS exceeded
FROM speed_ratio AS ratio
JOIN speed AS own ON own.set_key = ratio.set_key AND own.cell_id = ratio.cell_id
JOIN speed AS base ON base.set_key = ratio.set_key AND base.cell_id = ratio.reference_id
WHERE ratio.cell_id <> ratio.reference_id;

-- Natural endings: seconds from prompt to end of reply, a request, prefill included, and what that makes of answers a
-- second (measurement.md, 1). `ratio` above 1 is faster; its interval is over groups. Under a batch the requests share
-- their time.
CREATE VIEW time_to_answer AS
WITH arm AS (
  SELECT speed_group.set_key, speed_slot.group_id, speed_slot.cell_id, avg(ln(decode_ns + prefill_ns)) AS log_ns,
         sum(prompts) AS requests, sum(tokens) AS tokens, sum(decode_ns) AS decode_ns, sum(prefill_ns) AS prefill_ns
  FROM speed_group JOIN speed_slot ON speed_slot.group_id = speed_group.id
  JOIN speed_set ON speed_set.set_key = speed_group.set_key AND speed_set.work = 'natural'
  WHERE speed_group.id NOT IN (SELECT group_id FROM speed_void)
  GROUP BY speed_slot.group_id, speed_slot.cell_id
), total AS (
  SELECT set_key, cell_id, count(*) AS groups, sum(requests) AS requests, sum(tokens) AS tokens,
         1e-9 * (sum(decode_ns) + sum(prefill_ns)) / sum(requests) AS seconds_per_request,
         1e-9 * sum(prefill_ns) / sum(requests) AS prefill_seconds_per_request,
         1e9 * sum(tokens) / sum(decode_ns) AS tokens_per_s,
         1.0 * sum(tokens) / sum(requests) AS tokens_per_request
  FROM arm GROUP BY set_key, cell_id
), pair AS (
  SELECT arm.set_key, arm.cell_id, link.reference, link.reference_id, base.log_ns - arm.log_ns AS log_ratio
  FROM arm JOIN cell_reference AS link ON link.cell_id = arm.cell_id
  JOIN arm AS base ON base.group_id = arm.group_id AND base.cell_id = link.reference_id
), centre AS (
  SELECT set_key, cell_id, reference, reference_id, count(*) AS groups, avg(log_ratio) AS mean_log
  FROM pair GROUP BY set_key, cell_id, reference
), spread AS (
  SELECT centre.*, CASE WHEN groups > 1
                        THEN sqrt(sum((log_ratio - mean_log) * (log_ratio - mean_log)) / (groups - 1)) END AS sd_log
  FROM centre JOIN pair USING (set_key, cell_id, reference) GROUP BY set_key, cell_id, reference
), width AS (
  SELECT spread.*, sd_log / sqrt(groups) * coalesce(
           (SELECT value FROM t_quantile WHERE degrees = groups - 1), 1.959963984540054 + 2.372271230298562 / (groups - 1))
           AS half_log
  FROM spread
)
SELECT total.*, width.reference, width.reference_id, exp(mean_log) AS ratio,
       exp(mean_log - half_log) AS low, exp(mean_log + half_log) AS high,
       by_prompt.low AS prompts_low, by_prompt.high AS prompts_high,
       100 * (total.tokens_per_s / base.tokens_per_s - 1) AS tokens_per_s_gain_pct,
       100 * (total.tokens_per_request / base.tokens_per_request - 1) AS length_change_pct,
       100 * (total.tokens_per_s / base.tokens_per_s / (total.tokens_per_request / base.tokens_per_request) - 1)
         AS answers_per_s_change_pct
FROM total LEFT JOIN width USING (set_key, cell_id)
LEFT JOIN total AS base ON base.set_key = total.set_key AND base.cell_id = width.reference_id
LEFT JOIN speed_interval AS by_prompt ON by_prompt.set_key = total.set_key AND by_prompt.cell_id = total.cell_id
  AND by_prompt.reference_id = width.reference_id;

-- Triples of baseline, cell, baseline, in percent of throughput as published tables have them (measurement.md, 2);
-- valid within a drift of 3 %. The gain is NULL when the three counted unequal tokens.
CREATE VIEW bracketed AS
SELECT triple.*, 100 * (candidate / ((before + after) / 2) - 1) AS gain_pct, 100 * (after / before - 1) AS drift_pct,
       abs(100 * (after / before - 1)) <= 3 AS valid
FROM (
  SELECT speed_group.set_key, speed_group.id AS group_id, speed_group.number, speed_set.work, middle.cell_id,
         first.cell_id AS reference_id, 1e9 * first.tokens / first.decode_ns AS before,
         CASE WHEN speed_set.work = 'natural' OR (first.tokens = middle.tokens AND last.tokens = middle.tokens)
              THEN 1e9 * middle.tokens / middle.decode_ns END AS candidate,
         1e9 * last.tokens / last.decode_ns AS after
  FROM speed_group JOIN speed_set ON speed_set.set_key = speed_group.set_key AND speed_set.design = 'bcb'
  JOIN speed_slot AS first ON first.group_id = speed_group.id AND first.slot = 0
  JOIN speed_slot AS middle ON middle.group_id = speed_group.id AND middle.slot = 1
  JOIN speed_slot AS last ON last.group_id = speed_group.id AND last.slot = 2
  WHERE speed_group.id NOT IN (SELECT group_id FROM speed_void)
) AS triple;

-- Fixed concurrency: throughput with all places of the batch taken, and that of the tail, when no prompt waited any more.
CREATE VIEW concurrency AS
SELECT speed_group.set_key, speed_slot.cell_id, cell.batch, count(*) AS slots,
       1e9 * sum(speed_slot.tokens) / sum(speed_slot.decode_ns) AS tokens_per_s,
       1e9 * sum(speed_slot.tokens - speed_tail.tokens) / nullif(sum(speed_slot.decode_ns - speed_tail.decode_ns), 0)
         AS full_tokens_per_s,
       1e9 * sum(speed_tail.tokens) / nullif(sum(speed_tail.decode_ns), 0) AS tail_tokens_per_s,
       1.0 * sum(speed_tail.decode_ns) / sum(speed_slot.decode_ns) AS tail_share
FROM speed_group JOIN speed_slot ON speed_slot.group_id = speed_group.id
JOIN speed_tail ON speed_tail.group_id = speed_slot.group_id AND speed_tail.slot = speed_slot.slot
JOIN cell ON cell.id = speed_slot.cell_id
WHERE speed_group.id NOT IN (SELECT group_id FROM speed_void)
GROUP BY speed_group.set_key, speed_slot.cell_id;

-- What rounding alone changes. `plain`: a rule that keeps the target's output, drafted, against plain decoding with the
-- same weights; `batch`: a cell against the same one decoded at batch 1.
CREATE VIEW noise_floor AS
WITH twin AS (
  SELECT wide.id AS cell_id, 'plain' AS reference, link.reference_id
  FROM cell AS wide JOIN cell_reference AS link ON link.cell_id = wide.id AND link.reference = 'plain'
  WHERE wide.verifier_keeps = 'greedy'
  UNION ALL
  SELECT wide.id, 'batch', one.id
  FROM cell AS wide JOIN cell AS one ON one.batch = 1 AND wide.batch > 1
    AND one.task = wide.task AND one.split = wide.split AND one.task_version = wide.task_version
    AND one.data_sha256 = wide.data_sha256 AND one.task_options = wide.task_options
    AND one.target = wide.target AND one.target_sha256 = wide.target_sha256 AND one.target_options = wide.target_options
    AND one.drafter = wide.drafter AND one.drafter_options = wide.drafter_options AND one.drafts = wide.drafts
    AND one.verifier = wide.verifier AND one.verifier_options = wide.verifier_options
    AND one.max_tokens = wide.max_tokens AND one.weight_dtype = wide.weight_dtype
    AND one.compute_dtype = wide.compute_dtype AND one.logit_dtype = wide.logit_dtype AND one.device = wide.device
    AND one.engine = wide.engine AND one.activations = wide.activations
), pairs AS (
  SELECT twin.cell_id, twin.reference, twin.reference_id, output.id AS output_id,
         output.tokens_sha256 <> base.tokens_sha256 AS differs
  FROM twin JOIN output ON output.cell_id = twin.cell_id AND output.status = 'done'
  JOIN output AS base ON base.cell_id = twin.reference_id AND base.status = 'done'
    AND base.sample_id = output.sample_id AND base.repeat = output.repeat AND base.turn = output.turn
)
SELECT cell_id, reference, reference_id, count(*) AS pairs, sum(differs) AS diverged
FROM pairs GROUP BY cell_id, reference, reference_id;

-- Rules over the same blocks, per cell (measurement.md, 1, R): there is no path of their own behind it, hence no speed.
CREATE VIEW replayed AS
SELECT cell_id, count(*) AS requests, sum(passes) AS passes, sum(drafted) AS drafted, sum(exceptions) AS exceptions,
       sum(regret) AS regret, 1.0 * sum(strict_committed) / nullif(sum(passes), 0) AS strict_tokens_per_pass,
       1.0 * sum(committed) / nullif(sum(passes), 0) AS tokens_per_pass,
       100.0 * (1.0 * sum(committed) / nullif(sum(strict_committed), 0) - 1) AS gain_pct
FROM replay GROUP BY cell_id;

-- The machine during the slots of each arm: means of slots, and the extremes of all readings.
CREATE VIEW arm_environment AS
SELECT speed_group.set_key, speed_slot.cell_id, slot_environment.name, count(*) AS slots, sum(samples) AS samples,
       avg(mean) AS mean, min(least) AS least, max(most) AS most
FROM slot_environment
JOIN speed_slot ON speed_slot.group_id = slot_environment.group_id AND speed_slot.slot = slot_environment.slot
JOIN speed_group ON speed_group.id = slot_environment.group_id
GROUP BY speed_group.set_key, speed_slot.cell_id, slot_environment.name;

-- Verdicts of each cell's own grader by category, cluster and turn. A cluster is a subject, or the conversation that
-- bears its sample's id.
CREATE VIEW breakdown AS
SELECT output.cell_id, output.category, output.cluster, output.turn,
       max(output.cluster = output.sample_id) AS conversation, sum(verdict.verdict <> 'unscored') AS n,
       sum(verdict.verdict = 'correct') AS correct, sum(verdict.verdict = 'no_answer') AS no_answer,
       sum(output.finish_reason IN ('length', 'context_limit')) AS capped,
       sum(verdict.verdict = 'correct' AND output.finish_reason NOT IN ('length', 'context_limit')) AS uncapped_correct
FROM verdict JOIN output ON output.id = verdict.output_id
GROUP BY output.cell_id, output.category, output.cluster, output.turn;

-- Code runs of each cell's own grader by the class of their end.
CREATE VIEW outcome AS
SELECT cell_id, outcome, count(*) AS runs, sum(count(*)) OVER (PARTITION BY cell_id) AS all_runs
FROM verdict WHERE outcome IS NOT NULL GROUP BY cell_id, outcome;

-- Ratings and preferences by judge: how many were asked for, how many came, and their sum. Failed judgements have no value.
CREATE VIEW judged AS
SELECT output.cell_id, judgement.kind, judgement.judge, judgement.prompts, judgement.seed, judgement.baseline,
       rating.grader, output.category, output.turn, count(*) AS asked, count(rating.value) AS rated,
       sum(rating.value) AS total, avg(rating.value) AS mean, max(judgement.judged) AS latest
FROM judgement JOIN output ON output.id = judgement.output_id JOIN rating ON rating.judgement_id = judgement.id
GROUP BY output.cell_id, judgement.kind, judgement.judge, judgement.prompts, judgement.seed, judgement.baseline,
         rating.grader, output.category, output.turn;

-- Preference for each reply over its baseline, 1 to 2: the mean over the orders that were asked, NULL when one of them
-- gave none.
CREATE VIEW preference AS
SELECT output.cell_id, output.sample_id, output.repeat, output.turn, output.category, judgement.judge,
       judgement.prompts, judgement.seed, judgement.baseline, count(*) AS orders,
       max(judgement.status = 'equal') AS equal, max(judgement.judged) AS latest,
       CASE WHEN count(rating.value) = count(*) THEN avg(rating.value) END AS value
FROM judgement JOIN output ON output.id = judgement.output_id
JOIN rating ON rating.judgement_id = judgement.id AND rating.grader = 'default'
WHERE judgement.kind = 'pair'
GROUP BY judgement.output_id, judgement.judge, judgement.prompts, judgement.seed, judgement.baseline;
