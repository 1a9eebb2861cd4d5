// The division of linear layers into tasks of one panel.
#include "runners/kernels/linear.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runners/kernels/cpu_kernels.h"

namespace asdbench::kernels {
namespace {

// Rows that one pass over a panel serves; more rows are several passes.
constexpr std::int64_t kPassRows = 32;

/// Sums of one panel for some rows; a task's whole working memory.
struct Sums {
  alignas(64) std::array<float, kPassRows * kPanel> values;
};

/// Throws unless the matrices can be multiplied in one round.
void check_same_shape(const PackedMatrix& first, const PackedMatrix& other, std::int64_t rows) {
  if (rows < 0 || first.outputs() == 0 || other.inputs() != first.inputs() ||
      other.isa() != first.isa()) {
    throw std::invalid_argument(
        "linear: matrices of one round need the same inputs and "
        "instruction set, and rows must be at least 0");
  }
}

/// Activations of one pass as the kernels read them. Every thread of the pool prepares its own
/// copy: lines that another core has just written are slow to read, and they would be read once a
/// panel. The memory belongs to the thread that calls linear() and grows to its largest pass.
class PreparedActivations {
 public:
  static PreparedActivations& of_this_thread() {
    thread_local PreparedActivations activations;
    return activations;
  }

  /// Begins the pass over `rows` rows of `x` [rows, inputs] on the threads of a pool.
  void start(Isa isa, ActivationType type, int threads, Rows x, std::int64_t rows,
             std::int64_t inputs) {
    kernels_ = &cpu_kernels(isa);
    dots_ = dot_kernels(isa, type);
    type_ = type;
    x_ = x;
    rows_ = static_cast<int>(rows);
    inputs_ = inputs;
    const std::int64_t blocks = (inputs + kBlock - 1) / kBlock;
    sums_at_ = blocks * rows * kBlock;
    const auto lines = static_cast<std::size_t>((sums_at_ + blocks * rows) / kLineFloats + 1);
    if (copies_.size() < static_cast<std::size_t>(threads)) {
      copies_.resize(static_cast<std::size_t>(threads));
    }
    for (Copy& copy : copies_) {
      for (Prepared& prepared : copy.of_kind) {
        if (prepared.lines.size() < lines) prepared.lines.resize(lines);
        prepared.is_there = false;
      }
    }
  }

  int rows() const { return rows_; }

  /// sums [rows, kPanel] += one panel of `weights` times the rows; called on thread `thread`.
  void multiply(int thread, const PackedMatrix& weights, std::int64_t panel, float* sums) {
    const WeightFormat format = weights.format();
    const DotKernels* dots = has_dots(format) ? dots_ : nullptr;
    const PanelTask task{// A thread usually goes on with the panel after it.
                         .panel = weights.panel(panel),
                         .next = weights.panel(std::min(panel + 1, weights.panels() - 1)),
                         .blocks = (weights.inputs() + kBlock - 1) / kBlock,
                         .x = prepare(thread, has_nibbles(format), dots),
                         .sums = sums};
    (dots != nullptr ? dots->linear_panel : kernels_->linear_panel)(format, task);
  }

 private:
  static constexpr std::int64_t kLineFloats = kCacheLine / sizeof(float);
  struct alignas(kCacheLine) Line {
    float values[kLineFloats];
  };
  struct Prepared {
    std::vector<Line> lines;
    bool is_there = false;
  };
  struct alignas(kCacheLine) Copy {
    std::array<Prepared, 4> of_kind;  // floats, floats for nibbles, words, words for nibbles
  };

  PreparedRows prepare(int thread, bool for_nibbles, const DotKernels* dots) {
    Prepared& prepared = copies_[static_cast<std::size_t>(thread)]
                             .of_kind[(dots != nullptr ? 2 : 0) + (for_nibbles ? 1 : 0)];
    float* memory = prepared.lines.front().values;
    float* sums = memory + sums_at_;
    if (!prepared.is_there) {
      prepared.is_there = true;
      if (dots != nullptr) {
        dots->prepare_rows(x_.data, x_.stride, rows_, inputs_, for_nibbles, memory, sums);
      } else {
        kernels_->prepare_rows(x_.data, x_.stride, rows_, inputs_, for_nibbles, type_, memory,
                               sums);
      }
    }
    return {memory, sums, rows_};
  }

  const CpuKernels* kernels_ = nullptr;
  const DotKernels* dots_ = nullptr;
  ActivationType type_ = ActivationType::kFloat32;
  Rows x_;
  int rows_ = 0;
  std::int64_t inputs_ = 0;
  std::int64_t sums_at_ = 0;
  std::vector<Copy> copies_;  // [threads]
};

/// One panel of one output for the rows of a pass, which begin at row `done` of it. `out` is where
/// the panel's first output of the first row goes.
void linear_task(PreparedActivations& x, int thread, const LinearOutput& target, std::int64_t panel,
                 std::int64_t done, MutableRows out) {
  const PackedMatrix& weights = *target.weights;
  const std::int64_t first = panel * kPanel;
  const std::int64_t count = std::min<std::int64_t>(kPanel, weights.outputs() - first);
  Sums sums;
  for (int row = 0; row < x.rows(); ++row) {
    float* start = sums.values.data() + row * kPanel;
    std::fill_n(start, kPanel, 0.0f);
    if (target.bias != nullptr) std::copy_n(target.bias + first, count, start);
  }
  x.multiply(thread, weights, panel, sums.values.data());
  for (int row = 0; row < x.rows(); ++row) {
    const float* sum = sums.values.data() + row * kPanel;
    float* to = out.data + row * out.stride;
    if (target.residual.data == nullptr) {
      std::copy_n(sum, count, to);
    } else {
      const float* residual = target.residual.data + (done + row) * target.residual.stride + first;
      for (std::int64_t i = 0; i < count; ++i) to[i] = sum[i] + residual[i];
    }
  }
}

}  // namespace

void linear(Pool& pool, Rows x, std::int64_t rows, std::span<const LinearOutput> outputs,
            ActivationType type) {
  std::int64_t panels = 0;
  for (const LinearOutput& output : outputs) {
    check_same_shape(*outputs.front().weights, *output.weights, rows);
    panels += output.weights->panels();
  }
  if (rows == 0 || panels == 0) return;
  const PackedMatrix& front = *outputs.front().weights;
  PreparedActivations& activations = PreparedActivations::of_this_thread();
  for (std::int64_t done = 0; done < rows; done += kPassRows) {
    activations.start(front.isa(), type, pool.threads(), {x.data + done * x.stride, x.stride},
                      std::min(kPassRows, rows - done), front.inputs());
    pool.run(panels, [&](std::int64_t task, int thread) {
      const LinearOutput* target = outputs.data();
      while (task >= target->weights->panels()) task -= (target++)->weights->panels();
      const MutableRows& out = target->out;
      linear_task(activations, thread, *target, task, done,
                  {out.data + done * out.stride + task * kPanel, out.stride});
    });
  }
}

void linear_swiglu(Pool& pool, Rows x, std::int64_t rows, const PackedMatrix& gate,
                   const PackedMatrix& up, MutableRows out, ActivationType type) {
  check_same_shape(gate, up, rows);
  if (gate.outputs() != up.outputs()) {
    throw std::invalid_argument("linear_swiglu: gate has " + std::to_string(gate.outputs()) +
                                " outputs, up " + std::to_string(up.outputs()));
  }
  const CpuKernels& kernels = cpu_kernels(gate.isa());
  PreparedActivations& activations = PreparedActivations::of_this_thread();
  for (std::int64_t done = 0; done < rows; done += kPassRows) {
    activations.start(gate.isa(), type, pool.threads(), {x.data + done * x.stride, x.stride},
                      std::min(kPassRows, rows - done), gate.inputs());
    pool.run(gate.panels(), [&](std::int64_t task, int thread) {
      const std::int64_t first = task * kPanel;
      const std::int64_t count = std::min<std::int64_t>(kPanel, gate.outputs() - first);
      Sums gates;
      Sums ups;
      std::fill_n(gates.values.data(), activations.rows() * kPanel, 0.0f);
      std::fill_n(ups.values.data(), activations.rows() * kPanel, 0.0f);
      activations.multiply(thread, gate, task, gates.values.data());
      activations.multiply(thread, up, task, ups.values.data());
      kernels.swiglu(gates.values.data(), ups.values.data(), activations.rows() * kPanel);
      for (int row = 0; row < activations.rows(); ++row) {
        std::copy_n(gates.values.data() + row * kPanel, count,
                    out.data + (done + row) * out.stride + first);
      }
    });
  }
}

namespace {

// Panels whose logits are scored together: a few rows of them fit the nearest cache.
constexpr std::int64_t kStretchPanels = 8;
constexpr std::int64_t kStretch = kStretchPanels * kPanel;

/// Scores of the stretches of a vocabulary, and each thread's logits of one stretch. One for each
/// thread that calls linear_scores(); it grows to its largest head.
struct Stretches {
  static Stretches& of_this_thread() {
    thread_local Stretches stretches;
    return stretches;
  }

  void reserve(int threads, std::int64_t stretches) {
    const auto parts = static_cast<std::size_t>(stretches * kPassRows);
    if (choice.size() < parts) {
      for (auto* values : {&choice_logit, &runner_up, &draft_logit}) values->resize(parts);
      choice.resize(parts);
      bad.resize(parts);
    }
    if (logits.size() < static_cast<std::size_t>(threads)) {
      logits.resize(static_cast<std::size_t>(threads),
                    std::vector<float>(static_cast<std::size_t>(kPassRows * kStretch)));
    }
  }
  RowScores of(std::int64_t stretch) {
    const std::int64_t at = stretch * kPassRows;
    return {choice.data() + at, choice_logit.data() + at, runner_up.data() + at,
            draft_logit.data() + at, bad.data() + at};
  }

  std::vector<TokenId> choice;  // [stretches, kPassRows], within the stretch
  std::vector<float> choice_logit, runner_up, draft_logit;
  std::vector<std::uint8_t> bad;
  std::vector<std::vector<float>> logits;  // [threads] of [kPassRows, kStretch]
};

/// The scores of one row from those of its stretches.
void join_stretches(Stretches& parts, std::int64_t stretches, std::int64_t vocab, TokenId draft,
                    std::int64_t part_row, const RowScores& out, std::int64_t row) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const bool bad_draft = draft != kNoToken && (draft < 0 || draft >= vocab);
  float largest = -kInfinity;
  float second = -kInfinity;
  TokenId choice = kNoToken;
  bool bad_logits = false;
  for (std::int64_t stretch = 0; stretch < stretches; ++stretch) {
    const RowScores part = parts.of(stretch);
    bad_logits |= (part.bad[part_row] & kBadLogits) != 0;
    const float here = part.choice_logit[part_row];
    if (here > largest) {  // of equals the first stretch keeps the lowest id
      second = std::max(largest, part.runner_up[part_row]);
      largest = here;
      choice = static_cast<TokenId>(stretch * kStretch) + part.choice[part_row];
    } else {
      second = std::max(second, here);
    }
  }
  const bool has_draft = draft != kNoToken && !bad_draft && !bad_logits;
  out.choice[row] = bad_logits ? kNoToken : choice;
  out.choice_logit[row] = bad_logits ? kNan : largest;
  out.runner_up[row] = bad_logits ? kNan : second;
  out.draft_logit[row] = has_draft ? parts.of(draft / kStretch).draft_logit[part_row] : kNan;
  out.bad[row] =
      static_cast<std::uint8_t>((bad_logits ? kBadLogits : 0) | (bad_draft ? kBadDraft : 0));
}

}  // namespace

void linear_scores(Pool& pool, Rows x, std::int64_t rows, const PackedMatrix& weights,
                   const TokenId* draft, RowScores out, MutableRows logits, ActivationType type) {
  check_same_shape(weights, weights, rows);
  const CpuKernels& kernels = cpu_kernels(weights.isa());
  const std::int64_t vocab = weights.outputs();
  const std::int64_t stretches = (vocab + kStretch - 1) / kStretch;
  PreparedActivations& activations = PreparedActivations::of_this_thread();
  Stretches& parts = Stretches::of_this_thread();
  parts.reserve(pool.threads(), stretches);
  for (std::int64_t done = 0; done < rows; done += kPassRows) {
    const std::int64_t some = std::min(kPassRows, rows - done);
    activations.start(weights.isa(), type, pool.threads(), {x.data + done * x.stride, x.stride},
                      some, weights.inputs());
    pool.run(stretches, [&](std::int64_t stretch, int thread) {
      const std::int64_t first = stretch * kStretch;
      const std::int64_t width = std::min(kStretch, vocab - first);
      float* values = parts.logits[static_cast<std::size_t>(thread)].data();
      const LinearOutput output{&weights};
      for (std::int64_t panel = first / kPanel; panel * kPanel < first + width; ++panel) {
        linear_task(activations, thread, output, panel, 0,
                    {values + panel * kPanel - first, width});
      }
      std::array<TokenId, kPassRows> drafts;
      for (std::int64_t row = 0; row < some; ++row) {
        const std::int64_t id = std::int64_t{draft[done + row]} - first;
        drafts[static_cast<std::size_t>(row)] =
            id >= 0 && id < width ? static_cast<TokenId>(id) : kNoToken;
        if (logits.data != nullptr) {
          std::copy_n(values + row * width, width,
                      logits.data + (done + row) * logits.stride + first);
        }
      }
      kernels.score_rows(values, drafts.data(), some, width, MaskedVocab::kNo, parts.of(stretch));
    });
    for (std::int64_t row = 0; row < some; ++row) {
      join_stretches(parts, stretches, vocab, draft[done + row], row, out, done + row);
    }
  }
}

}  // namespace asdbench::kernels
