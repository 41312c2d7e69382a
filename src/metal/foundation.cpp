#include "vortex/metal/foundation.h"

namespace vortex::metal::NS {

/// The objects that end with the pools of a thread, oldest first. Those outside of all pools end with the thread.
struct Pending {
  std::vector<std::pair<Object*, void (*)(Object*)>> objects;
  void endFrom(size_t first) {
    while (objects.size() > first) {
      const auto [object, drop] = objects.back();
      objects.pop_back();
      drop(object);
    }
  }
  ~Pending() { endFrom(0); }
};

static Pending& pending() {
  thread_local Pending objects;
  return objects;
}

void Object::dropReference() {
  if (references_.fetch_sub(1) == 1)
    delete this;
}

void Object::leaveToPool() {
  pending().objects.emplace_back(this, [](Object* object) { object->dropReference(); });
}

AutoreleasePool::AutoreleasePool() : first_(pending().objects.size()) {}
AutoreleasePool::~AutoreleasePool() { pending().endFrom(first_); }

String* String::string(const char* text, StringEncoding encoding) {
  return alloc()->init(text, encoding)->autorelease();
}

String* String::init(const char* text, StringEncoding) {
  text_ = text ? text : "";
  return this;
}

Number* Number::number(double value) { return (new Number(value))->autorelease(); }

Array* Array::array(const Object* const* objects, UInteger count) {
  return alloc()->init(objects, count)->autorelease();
}

Array* Array::init(const Object* const* objects, UInteger count) {
  for (UInteger i = 0; i < count; ++i) {
    auto* object = const_cast<Object*>(objects[i]);
    object->addReference();
    objects_.push_back(object);
  }
  return this;
}

Array::~Array() {
  for (Object* object : objects_)
    object->dropReference();
}

Dictionary* Dictionary::dictionary(const Object* const* values, const Object* const* keys, UInteger count) {
  auto* made = new Dictionary;
  made->keys_ = TransferPtr(Array::alloc()->init(keys, count));
  made->values_ = TransferPtr(Array::alloc()->init(values, count));
  return made->autorelease();
}

Error* Error::error(String* domain, Integer code, String* description) {
  auto* made = new Error;
  made->code_ = code;
  made->domain_ = RetainPtr(domain);
  made->description_ = RetainPtr(description);
  return made->autorelease();
}

URL* URL::fileURLWithPath(const String* path) {
  auto* made = new URL;
  made->path_ = path ? path->utf8String() : "";
  return made->autorelease();
}

}  // namespace vortex::metal::NS
