#include "runtime/model_source.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "ir/error.hpp"
#include "ir/open_dimensions.hpp"
#include "ir/size_resolver.hpp"
#include "runtime/constant_hashes.hpp"
#include "runtime/devices.hpp"
#include "runtime/open_plans.hpp"

namespace kiln {
namespace {

class native_model final : public loaded_model {
 public:
  explicit native_model(kiln::executable loaded) : loaded_(std::move(loaded)) {}
  const kiln::executable& executable() const override { return loaded_; }

 private:
  kiln::executable loaded_;
};

class native_source final : public model_source {
 public:
  native_source(const program& source, std::shared_ptr<device> on, std::size_t most_instances)
      : device_(std::move(on)),
        most_(std::max<std::size_t>(1, most_instances)),
        plans_(source.clone(), *device_, {.hashes = &hashes_}) {
    if (symbols().empty()) at({});  // loads now
    if (has_data_decided_sizes(source))
      data_sizes_.emplace(plans_.native(), [this](program part) -> size_resolver::part_runner {
        const auto runs = std::make_shared<native_source>(part, device_, most_);
        return [runs](const dim_bindings& sizes, std::span<const literal> inputs) {
          return runs->at(sizes)->executable().evaluate(inputs);
        };
      });
  }
  const std::map<std::string, dim_range>& symbols() const override { return plans_.native().symbols; }

  std::shared_ptr<const loaded_model> at(const dim_bindings& sizes) override {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(models_, sizes, &std::pair<dim_bindings, model>::first);
    if (found != models_.end()) models_.splice(models_.begin(), models_, found);
    else models_.emplace_front(sizes, std::make_shared<native_model>(make(sizes)));
    while (models_.size() > most_) models_.pop_back();
    return models_.front().second;
  }

  void add_data_sizes(dim_bindings& sizes, const std::map<std::string, literal>& inputs) override {
    if (data_sizes_) data_sizes_->add(sizes, inputs);
  }

 private:
  using model = std::shared_ptr<const native_model>;

  kiln::executable make(const dim_bindings& sizes) {
    const program& native = plans_.native();
    require_dimensions(native, sizes);
    if (!native.symbols.empty())
      if (auto planned = plans_.at(sizes)) return kiln::executable(std::move(planned), *device_);
    // Explains what is wrong with the sizes, or plans a program that has another structure for them.
    return load(native.bind(sizes), *device_, {.hashes = &hashes_, .sizes = &sizes});
  }

  constant_hashes hashes_;
  std::shared_ptr<device> device_;
  const std::size_t most_;
  std::mutex mutex_;  // guards what follows
  open_plans plans_;
  std::list<std::pair<dim_bindings, model>> models_;  // the most recently used first
  std::optional<size_resolver> data_sizes_;           // if data decide sizes
};

}  // namespace

native_consent consent_of(const model_request& request) {
  native_consent consent{.user = user_keys::of_this_user(), .allow_unsigned = request.allow_unsigned};
  if (!request.trusted_keys.empty()) consent.only = trusted_keys::read(request.trusted_keys);
  return consent;
}

std::unique_ptr<model_source> open_native(const program& source, const model_request& request) {
  return std::make_unique<native_source>(
      source, open_device(request.device, {.threads = request.threads, .allocator = request.allocator}),
      request.most_instances);
}

}  // namespace kiln
