-- Reads the usage, the model and the length of the text in an answer while it passes, and holds nothing of it back: in JSON, in lines
-- of JSON and in streams of events. docs/limits.md says what each number means.
local LONGEST = 8192 -- bytes of what is kept: a member's name, a number, the model
local LONGEST_MODEL = 512 -- bytes of a model's name, as many as a request may name
local MOST_TOKENS = 1000000000 -- of one count; more is no measurement

local function set(...)
  local members = {}
  for _, name in ipairs({ ... }) do members[name] = true end
  return members
end
-- The counts in an object `usage`, and the objects in it that have one more.
local COUNTS = set("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "completion_tokens",
  "output_tokens", "cached_tokens", "total_tokens")
local DETAILS = set("prompt_tokens_details", "input_tokens_details")
-- What Anthropic's `message_start` says of the answer is a first guess; a later event tells the count.
local GUESSED = set("completion_tokens", "output_tokens")
-- The members of an answer, or of an event, in which its text is, and the members that hold it there. `data` holds vectors.
local ROOTS = { choices = true, delta = true, output = true, content = true, data = false }
local TEXTS = set("content", "text", "delta", "reasoning_content", "reasoning", "thinking", "refusal", "arguments", "partial_json")
local LINES = set("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines")

local QUOTE, COLON, SLASH, OBJECT, LETTER_U = 34, 58, 92, 123, 117
local OPENS = { [91] = true, [123] = true }
local CLOSES = { [93] = true, [125] = true }
local find, byte, sub, match = string.find, string.byte, string.sub, string.match

-- Returns the length of the UTF-8 character that begins with this byte, and its lowest and highest second byte; nil if no
-- character begins with it.
local function width(first)
  if first < 0x80 then return 1, 0, 0 end
  if first < 0xC2 then return nil end
  if first < 0xE0 then return 2, 0x80, 0xBF end
  if first < 0xF0 then return 3, first == 0xE0 and 0xA0 or 0x80, first == 0xED and 0x9F or 0xBF end
  if first < 0xF5 then return 4, first == 0xF0 and 0x90 or 0x80, first == 0xF4 and 0x8F or 0xBF end
end
-- Returns a model's name as the access log may carry it: its whole characters within LONGEST_MODEL bytes, or nil if those
-- bytes are not UTF-8. Protobuf strings must be UTF-8.
local function model_name(text)
  local at, size = 1, math.min(#text, LONGEST_MODEL)
  while at <= size do
    local wide, lowest, highest = width(byte(text, at))
    if wide == nil then return nil end
    local last = at + wide - 1
    for place = at + 1, math.min(last, LONGEST_MODEL) do
      local continuing = byte(text, place)
      if continuing == nil or continuing < lowest or continuing > highest then return nil end
      lowest, highest = 0x80, 0xBF
    end
    if last > LONGEST_MODEL then return sub(text, 1, at - 1) end
    at = last + 1
  end
  return sub(text, 1, size)
end

-- Returns the whole number of tokens that a JSON value is, in any form that JSON has for it (12, 12.0, 1.2e1); nil if it is none.
local function count_of(value)
  if #value > LONGEST then return nil end
  local whole, fraction, power, after = match(value, "^[ \t\r\n]*(%-?%d+)(%.?%d*)([eE]?[+-]?%d*)()")
  if whole == nil or find(whole, "^%-?0%d") or fraction == "." or not find(value, "^[ \t\r\n]*$", after) then return nil end
  if power ~= "" and not find(power, "^[eE][+-]?%d+$") then return nil end
  local count = tonumber(whole .. fraction .. power)
  if count == nil or count < 0 or count > MOST_TOKENS or count % 1 ~= 0 then return nil end
  return count + 0
end

-- Returns a member's name without escapes. Every name that is looked for is ASCII.
local function name_of(text)
  if not find(text, "\\", 1, true) then return text end
  return (text:gsub("\\u00(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

-- Returns how many bytes the text of a string has in UTF-8 without its escapes, and the escape that this piece of it cuts. A half
-- of a surrogate pair has two bytes.
local function measure(piece)
  local bytes, at = 0, 1
  while true do
    local slash = find(piece, "\\", at, true)
    if not slash then return bytes + #piece - at + 1, "" end
    bytes = bytes + slash - at
    local letter = byte(piece, slash + 1)
    if letter == nil then return bytes, "\\" end
    if letter ~= LETTER_U then
      bytes, at = bytes + 1, slash + 2
    else
      if #piece < slash + 5 then return bytes, sub(piece, slash) end
      local code = tonumber(sub(piece, slash + 2, slash + 5), 16) or 0
      local half = code >= 0xD800 and code <= 0xDFFF
      bytes, at = bytes + (code < 0x80 and 1 or (half or code < 0x800) and 2 or 3), slash + 6
    end
  end
end

-- Takes a JSON text piece by piece, cut anywhere, and notes in `found` the largest of each count, the model, and the bytes of text.
-- Notes in `seen`, of the last piece: how many strings of text began, where the last one began and ended, and whether the JSON text
-- was complete.
local function reader(found, seen)
  local depth = 0
  local level = 1         -- how deep the members `usage` and `model` are: 2 within `response` and `message`
  local guessing = false  -- within `message`
  local counts, details   -- how deep the members of `usage` are, and those of its details, while within
  local rooted = false    -- within a member that holds text
  local quoted = false    -- within a string
  local escaped = false   -- within a string, after an odd number of backslashes
  local key, word         -- the name of the member whose value comes, and the string read last
  local kept              -- what is being kept, if anything: a name, a number, the model
  local cut               -- within a string of text: the escape that the last piece cut

  local function counted()
    if kept and key and (depth == counts and COUNTS[key] or depth == details and key == "cached_tokens") and
      not (guessing and GUESSED[key]) then
      local count = count_of(sub(kept, 1, -2))
      if count and count > (found[key] or -1) then found[key], found.changed = count, true end
    end
    kept = nil
  end
  local function text_begins()
    if found.text_bytes == nil then found.text_bytes, found.changed = 0, true end
  end
  local function string_begins(at)
    quoted, kept = true, nil
    if key == nil then
      if rooted or depth == level or depth == counts or depth == details then kept = "" end
    elseif TEXTS[key] and (rooted or depth == 1 and ROOTS[key]) then
      text_begins()
      cut, seen.texts, seen.from = "", seen.texts + 1, at
    elseif key == "model" and depth == level then
      kept = ""
    end
  end
  local function string_ends()
    quoted, escaped = false, false
    if kept == nil then return end
    local text = sub(kept, 1, -2)
    kept = nil
    if key == nil then
      word = name_of(text)
    elseif not find(text, "\\", 1, true) then
      local name = model_name(text)
      if name and name ~= found.model then found.model, found.changed = name, true end
    end
  end
  local function opens(sign)
    kept = nil
    if sign == OBJECT and depth == level and key == "usage" then
      counts = depth + 1
    elseif sign == OBJECT and depth == counts and DETAILS[key] then
      details = depth + 1
    elseif depth == 1 and key then
      if sign == OBJECT and (key == "response" or key == "message") then
        level, guessing = 2, key == "message"
      elseif ROOTS[key] ~= nil then
        rooted = ROOTS[key]
        text_begins()
      end
    end
    depth, key, word = depth + 1, nil, nil
  end
  local function closes()
    counted()
    depth, key, word = math.max(0, depth - 1), nil, nil
    if details and depth < details then details = nil end
    if counts and depth < counts then counts = nil end
    if depth <= 1 then level, guessing, rooted = 1, false, false end
  end

  local function feed(text)
    seen.texts, seen.upto, seen.complete = 0, nil, false
    local at, size = 1, #text
    while at <= size do
      local stop
      if quoted then
        stop = find(text, '"', at, true)
        local last = (stop or size + 1) - 1
        local slashes = escaped and 1 or 0
        while last >= at and byte(text, last) == SLASH do slashes, last = slashes + 1, last - 1 end
        if last >= at and escaped then slashes = slashes - 1 end
        escaped = slashes % 2 == 1
        local ends = stop and not escaped
        if cut then
          local bytes
          bytes, cut = measure(cut .. sub(text, at, ends and stop - 1 or stop or size))
          if bytes > 0 then found.text_bytes, found.changed = found.text_bytes + bytes, true end
          if ends then cut, seen.upto = nil, stop end
        elseif kept and #kept < LONGEST then
          kept = kept .. sub(text, at, stop or size)
        end
        if not stop then return end
        if ends then string_ends() else escaped = false end
      else
        local structured = rooted or depth == level or depth == counts or depth == details
        stop = find(text, structured and '["{}%[%]:,]' or '["{}%[%]]', at)
        if kept and #kept < LONGEST then kept = kept .. sub(text, at, stop or size) end
        if not stop then return end
        local sign = byte(text, stop)
        if sign == QUOTE then
          string_begins(stop)
        elseif sign == COLON then
          key, word = word, nil
          kept = (depth == counts or depth == details) and "" or nil
        elseif OPENS[sign] then
          opens(sign)
        elseif CLOSES[sign] then
          closes()
        else
          counted()
          key, word = nil, nil
        end
      end
      at = stop + 1
    end
    seen.complete = depth == 0
  end
  local function restart()
    depth, level, guessing, counts, details, rooted = 0, 1, false, nil, nil, false
    quoted, escaped, key, word, kept, cut = false, false, nil, nil, nil, nil
  end
  return feed, restart
end

-- Takes lines piece by piece; each is a JSON text.
local function lines(feed, restart)
  return function(text)
    local at, size = 1, #text
    while at <= size do
      local stop = find(text, "\n", at, true)
      feed(sub(text, at, (stop or size + 1) - 1))
      if not stop then return end
      restart()
      at = stop + 1
    end
  end
end

-- Takes a stream piece by piece, and passes the data of its events on; a blank line ends an event.
--
-- Most events are one line that differs from the one before in one string of text. Of such a line, the bytes of that string count and
-- nothing else is read: what is before and behind it says again what it said the time before.
local function events(feed, restart, found, seen)
  local start = ""       -- of a line, until it shows whether the line is one of data
  local data             -- whether this line is; nil at its beginning
  local first = true     -- no line has been read; the first one may begin with a byte-order mark
  local returned = false -- the last piece ended with a carriage return, which ends a line by itself or with a line feed
  local fresh = true     -- no data of this event was passed on
  local before, behind   -- what the last line of data has before its one string of text, and behind it
  local function repeats(text)
    if before == nil or #text < #before + #behind or sub(text, 1, #before) ~= before or sub(text, -#behind) ~= behind then
      return false
    end
    local middle = sub(text, #before + 1, -#behind - 1)
    if find(middle, '["\\]') then return false end
    found.text_bytes, found.changed = found.text_bytes + #middle, true
    return true
  end
  -- A line, or the beginning of one that is cut.
  local function line(text, whole)
    if first then text = text:gsub("^\239\187\191", "") end
    first = false
    data = sub(text, 1, 5) == "data:"
    if data then
      if whole and fresh and repeats(text) then return end
      local alone = whole and fresh
      before, behind, fresh = nil, nil, false
      feed(sub(text, 6))
      -- `seen` counts from the sixth byte on.
      if alone and seen.complete and seen.texts == 1 then before, behind = sub(text, 1, seen.from + 5), sub(text, seen.upto + 5) end
    elseif text == "" then
      fresh = true
      restart()
    end
  end
  return function(text)
    if returned and byte(text) == 10 then text = sub(text, 2) end
    returned = byte(text, -1) == 13
    if find(text, "\r", 1, true) then text = text:gsub("\r\n", "\n"):gsub("\r", "\n") end
    local at, size = 1, #text
    while at <= size do
      local stop = find(text, "\n", at, true)
      local part = sub(text, at, (stop or size + 1) - 1)
      if data == nil then
        start = start .. part
        if stop or #start >= 8 then
          line(start, stop ~= nil)
          start = ""
        end
      elseif data then
        feed(part)
      end
      if not stop then return end
      data = nil
      at = stop + 1
    end
  end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local encoding = (headers:get("content-encoding") or ""):lower()
  if encoding ~= "" and encoding ~= "identity" then return end
  local kind = match(headers:get("content-type") or "", "^[ \t]*([^; \t]*)"):lower()
  local found = {}
  local seen = { texts = 0 }
  local feed, restart = reader(found, seen)
  local take
  if kind == "application/json" or find(kind, "^application/.*%+json$") then
    take = feed
  elseif LINES[kind] then
    take = lines(feed, restart)
  elseif kind == "text/event-stream" then
    take = events(feed, restart, found, seen)
  else
    return
  end
  local told = {}
  for chunk in handle:bodyChunks() do
    local size = chunk:length()
    if size > 0 then take(chunk:getBytes(0, size)) end
    if found.changed then
      found.changed = nil
      local metadata = handle:streamInfo():dynamicMetadata()
      for name, value in pairs(found) do
        if told[name] ~= value then
          told[name] = value
          metadata:set("postern.usage", name, value)
        end
      end
    end
  end
end
