#include "runtime/model_source.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "runtime/devices.hpp"

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
  native_source(const program& source, std::unique_ptr<device> on)
      : device_(std::move(on)), model_(std::make_shared<native_model>(load(source, *device_))) {}
  const std::map<std::string, dim_range>& symbols() const override { return none_; }
  std::shared_ptr<const loaded_model> at(const dim_bindings& sizes) override {
    if (!sizes.empty())
      throw error(error_kind::usage,
                  "dimension '" + sizes.begin()->first + "': a file of native kernels has its sizes; give none");
    return model_;
  }

 private:
  std::map<std::string, dim_range> none_;
  std::unique_ptr<device> device_;
  std::shared_ptr<const native_model> model_;
};

}  // namespace

native_consent consent_of(const model_request& request) {
  native_consent consent{.user = user_keys::of_this_user(), .allow_unsigned = request.allow_unsigned};
  if (!request.trusted_keys.empty()) consent.only = trusted_keys::read(request.trusted_keys);
  return consent;
}

bool is_native(const program& p) {
  if (!p.symbols.empty()) return false;
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions())
      if (const auto* code = i.op().get_if<code_object>(); code && code->format != code_format::native) return false;
  return true;
}

std::unique_ptr<model_source> open_native(const program& source, const model_request& request) {
  return std::make_unique<native_source>(source, open_device(request.device, {.threads = request.threads}));
}

}  // namespace kiln
