// Language models, which libkiln.so provides for the C interface in libkiln_runtime.so.
#include <algorithm>
#include <mutex>
#include <utility>

#include "generation/decoder.hpp"
#include "generation/decoder_session.hpp"
#include "generation/sampling.hpp"
#include "ir/error.hpp"
#include "runtime/text_decoder.hpp"
#include "session/request_options.hpp"

namespace kiln {
namespace {

// The decoder works on one batch at a time; `current` is the one whose sequences it holds.
struct shared_decoder {
  shared_decoder(const model_request& request, std::int64_t context)
      : opened(open_decoder_session(request.file, serving_all_lengths(options_of(request)))),
        model({.decoder = opened.get()}, context) {}
  static session_options serving_all_lengths(session_options options) {
    options.specialization = specialization::off;
    return options;
  }

  std::mutex mutex;  // guards what follows
  std::unique_ptr<session> opened;
  decoder model;
  void* current = nullptr;
};

sampling_options options_of(const kiln_sampling& given) {
  static_assert(static_cast<int>(sampling_method::top_k) == KILN_SAMPLE_TOP_K &&
                static_cast<int>(sampling_method::top_p) == KILN_SAMPLE_TOP_P);
  if (given.method < KILN_SAMPLE_GREEDY || given.method > KILN_SAMPLE_TOP_P)
    throw error(error_kind::usage, "sampling: there is no such method; use one of kiln_sampling_method");
  sampling_options result;
  result.method = static_cast<sampling_method>(given.method);
  if (given.temperature != 0) result.temperature = given.temperature;
  if (given.top_k != 0) result.top_k = given.top_k;
  if (given.top_p != 0) result.top_p = given.top_p;
  if (given.repetition_penalty != 0) result.repetition_penalty = given.repetition_penalty;
  result.seed = given.seed;
  return result;
}

class shared_sequences final : public text_sequences {
 public:
  shared_sequences(std::shared_ptr<shared_decoder> of, sequence_batch waiting)
      : of_(std::move(of)), waiting_(std::move(waiting)) {}
  ~shared_sequences() override {
    std::lock_guard lock(of_->mutex);
    try {
      if (of_->current == this) of_->current = nullptr, waiting_ = of_->model.exchange();
    } catch (const error&) {
      // The device is lost.
    }
  }

  void append(std::size_t rows, std::size_t count, const std::int64_t* ids, float* logits) override {
    id_rows given;
    for (std::size_t r = 0; r < rows; ++r) given.emplace_back(ids + r * count, ids + (r + 1) * count);
    std::lock_guard lock(of_->mutex);
    last_logits_ = mine().append(given);
    if (logits) std::ranges::copy(last_logits_, logits);
  }
  void choose(const kiln_sampling& sampling, std::int64_t* ids) override {
    const sampling_options options = options_of(sampling);
    check(options);
    std::lock_guard lock(of_->mutex);
    const auto width = static_cast<std::size_t>(of_->model.vocabulary());
    const std::size_t rows = last_logits_.size() / width;
    if (rows == 0) throw error(error_kind::usage, "choose: there are no logits of last ids; append ids first");
    if (samplers_.size() != rows || options != sampling_) {
      samplers_.clear(), sampling_ = options;
      for (std::size_t r = 0; r < rows; ++r) {
        sampling_options own = options;
        own.seed += r;
        samplers_.emplace_back(own);
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<std::int64_t> before;
      if (options.repetition_penalty != 1) before = mine().ids_of(r);
      ids[r] = samplers_[r].choose(std::span(last_logits_).subspan(r * width, width), before);
    }
  }
  std::size_t rows() const override {
    std::lock_guard lock(of_->mutex);
    return of_->current == this ? static_cast<std::size_t>(of_->model.batch()) : waiting_.history.size();
  }
  std::int64_t length() const override {
    std::lock_guard lock(of_->mutex);
    return of_->current == this ? of_->model.length() : waiting_.past;
  }
  void rollback(std::int64_t count) override {
    std::lock_guard lock(of_->mutex);
    mine().rollback(count);
    if (count != 0) last_logits_.clear();
  }
  void reset() override {
    std::lock_guard lock(of_->mutex);
    mine().reset();
    last_logits_.clear(), samplers_.clear();
  }
  std::unique_ptr<text_sequences> copy() override {
    std::lock_guard lock(of_->mutex);
    auto result = std::make_unique<shared_sequences>(of_, mine().copy());
    result->last_logits_ = last_logits_, result->samplers_ = samplers_, result->sampling_ = sampling_;
    return result;
  }
  std::vector<std::byte> save() override {
    std::lock_guard lock(of_->mutex);
    return mine().save();
  }

  // The decoder, with these sequences in it. Call it under the mutex.
  decoder& mine() {
    if (of_->current == this) return of_->model;
    sequence_batch other = of_->model.exchange(std::move(waiting_));
    waiting_ = {};
    if (of_->current) static_cast<shared_sequences*>(of_->current)->waiting_ = std::move(other);
    of_->current = this;
    return of_->model;
  }

 private:
  std::shared_ptr<shared_decoder> of_;
  sequence_batch waiting_;          // while the decoder holds another batch
  std::vector<float> last_logits_;  // empty if the last ids were taken back or loaded
  sampling_options sampling_;
  std::vector<sampler> samplers_;  // one for each row, once an id was chosen
};

class opened_decoder final : public text_decoder {
 public:
  opened_decoder(const model_request& request, std::int64_t context)
      : shared_(std::make_shared<shared_decoder>(request, context)) {}
  std::int64_t vocabulary() const override { return shared_->model.vocabulary(); }
  std::optional<std::int64_t> context() const override { return shared_->model.context(); }
  std::unique_ptr<text_sequences> make() override {
    return std::make_unique<shared_sequences>(shared_, sequence_batch{});
  }
  std::unique_ptr<text_sequences> load(std::span<const std::byte> saved) override {
    auto result = std::make_unique<shared_sequences>(shared_, sequence_batch{});
    std::lock_guard lock(shared_->mutex);
    result->mine().load(saved);
    return result;
  }

 private:
  std::shared_ptr<shared_decoder> shared_;
};

}  // namespace
}  // namespace kiln

extern "C" __attribute__((visibility("default"))) const kiln::decoder_entry* kiln_decoder_entry() {
  static const kiln::decoder_entry entry{
      .open = [](const kiln::model_request& request, std::int64_t context) -> std::shared_ptr<kiln::text_decoder> {
        return std::make_shared<kiln::opened_decoder>(request, context);
      }};
  return &entry;
}
