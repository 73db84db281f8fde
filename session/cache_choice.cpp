#include "session/cache_choice.hpp"

#include "ir/trust/native_consent.hpp"
#include "jit/remote/http_layer.hpp"
#include "jit/remote/redis_layer.hpp"
#include "jit/tuning/device_class.hpp"

namespace kiln {
namespace {

std::shared_ptr<remote_layer> remote_layer_at(const std::string& url) {
  return is_http_url(url) ? make_http_layer(parse_http_url(url)) : make_redis_layer(parse_redis_url(url));
}

}  // namespace

cache_options cache_options_of(const cache_choice& choice) {
  cache_options options = default_cache_options(choice.folder);
  if (!choice.sign_key.empty()) options.sign_with = signing_key::read(choice.sign_key);
  options.consent = consent_of(choice);
  if (!choice.remote.empty()) options.remote = remote_layer_at(choice.remote);
  return options;
}

native_consent consent_of(const cache_choice& choice) {
  native_consent consent{.user = user_keys::of_this_user(), .allow_unsigned = choice.allow_unsigned};
  if (!choice.trust.empty()) consent.only = trusted_keys::read(choice.trust);
  return consent;
}

std::unique_ptr<kernel_cache> open_cache(const cache_choice& choice, std::shared_ptr<const embedded_entries> embedded,
                                         warning_sink warn) {
  if (choice.disabled) return nullptr;
  cache_options options = cache_options_of(choice);
  options.embedded = std::move(embedded);
  options.warn = std::move(warn);
  return kernel_cache::open(std::move(options));
}

std::unique_ptr<tuning_records> open_records(const std::filesystem::path& folder,
                                             std::vector<std::filesystem::path> layers, const chosen_device& chosen,
                                             std::string hints, warning_sink warn) {
  return std::make_unique<tuning_records>(
      tuning_records_options{.folder = folder,
                             .layers = std::move(layers),
                             .device_class = device_class(chosen.device->info(), chosen.target),
                             .compiler = this_compiler(chosen.target.family),
                             .hints = std::move(hints),
                             .warn = std::move(warn)});
}

}  // namespace kiln
